// The outbox: it finds the servers of renewals, and puts each renewal into a stream.

package renewal

import (
	"context"
	"math/bits"
	"sync"
	"time"
)

// maxRouters bounds the number of goroutines that wait for Sender.Node.
const maxRouters = 16

// outbox finds the server of each task, and puts the task into the stream that leads there. Its
// goroutines start on demand, and end when they have nothing left to do.
type outbox struct {
	sender Sender
	ctx    context.Context // ends with Close
	wg     *sync.WaitGroup
	addrs  []string // where the tasks being submitted go; only the scheduler's goroutine uses it

	batches sync.Pool // of *[]Task, the senders' buffers

	mu       sync.Mutex // guards what follows, including each stream's backlog
	unrouted queue
	routers  int // goroutines that ask Sender.Node
	free     int // how many of those are not waiting for its answer
	streams  map[destination]*stream
}

func newOutbox(ctx context.Context, s Sender, wg *sync.WaitGroup) *outbox {
	return &outbox{sender: s, ctx: ctx, wg: wg, streams: make(map[destination]*stream)}
}

// submit takes over tasks that are to be renewed. It does not wait. One goroutine calls it, and
// the WaitGroup counts that goroutine, so that Close does not miss goroutines started here.
func (o *outbox) submit(tasks []Task) {
	if len(tasks) == 0 {
		return
	}
	o.addrs = o.addrs[:0]
	for _, t := range tasks {
		o.addrs = append(o.addrs, o.sender.Known(t.Key()))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, t := range tasks {
		if addr := o.addrs[i]; addr != "" {
			o.enqueue(addr, t)
		} else {
			o.unrouted.push(t)
		}
	}
	o.staff()
}

// staff makes sure that tasks without a server do not all wait behind routers that wait
// themselves: while there are such tasks, it keeps one router free, up to maxRouters. The
// caller holds o.mu.
func (o *outbox) staff() {
	if o.unrouted.len() > 0 && o.free == 0 && o.routers < maxRouters {
		o.routers++
		o.free++
		o.wg.Go(o.route)
	}
}

// route finds the servers of tasks until no unrouted task is left.
func (o *outbox) route() {
	var b bound
	defer b.end()
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.unrouted.len() > 0 {
		t := o.unrouted.pop()
		o.free--
		o.staff()
		o.mu.Unlock()

		_, try := t.Urgency()
		addr, err := o.sender.Node(b.context(o.ctx, try), t.Key())
		if err != nil {
			o.sender.Fail(t, err)
		}

		o.mu.Lock()
		o.free++
		if err == nil {
			o.enqueue(addr, t)
		}
	}
	o.routers--
	o.free--
}

// enqueue puts t into the stream that leads to its server. The caller holds o.mu.
func (o *outbox) enqueue(addr string, t Task) {
	deadline, try := t.Urgency()
	to := destination{addr, bits.Len64(uint64(try))}
	s := o.streams[to]
	if s == nil {
		s = &stream{to: to, senders: 1}
		o.streams[to] = s
		o.wg.Go(func() { s.drain(o) })
	}
	s.backlog.push(pending{task: t, by: deadline, try: try})
}

// bound makes the contexts of successive calls of Sender.Node. Node answers most of them from
// memory, so one context serves all calls made within one Resolution.
type bound struct {
	ctx    context.Context
	cancel context.CancelFunc
	ends   time.Time
}

func (b *bound) context(parent context.Context, timeout time.Duration) context.Context {
	ends := time.Now().Add(timeout)
	if b.ctx == nil || b.ends.After(ends) || ends.Sub(b.ends) > Resolution {
		b.end()
		b.ctx, b.cancel = context.WithDeadline(parent, ends)
		b.ends = ends
	}
	return b.ctx
}

func (b *bound) end() {
	if b.cancel != nil {
		b.cancel()
	}
}
