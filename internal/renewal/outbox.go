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
	sender    Sender
	ctx       context.Context // ends with Close
	wg        *sync.WaitGroup
	epoch     time.Time   // from which backlogs count
	submitted []addressed // by the call of submit under way; only the scheduler's goroutine uses it

	batches sync.Pool // of *[]Task, the senders' buffers
	spare   sync.Pool // of *stream, given up, with an empty backlog

	mu       sync.Mutex // guards what follows, including each stream's backlog
	unrouted queue[Task]
	routers  int // goroutines that ask Sender.Node
	free     int // how many of those are not waiting for its answer
	streams  map[destination]*stream
}

// addressed is a task and the server to which it goes, "" if that has to be found.
type addressed struct {
	addr string
	pending
}

func newOutbox(ctx context.Context, s Sender, epoch time.Time, wg *sync.WaitGroup) *outbox {
	return &outbox{sender: s, ctx: ctx, epoch: epoch, wg: wg, streams: make(map[destination]*stream)}
}

// submit takes over tasks that are to be renewed. It does not wait. One goroutine calls it, and
// the WaitGroup counts that goroutine, so that Close does not miss goroutines started here.
func (o *outbox) submit(tasks []Task) {
	if len(tasks) == 0 {
		return
	}
	for _, t := range tasks {
		o.submitted = append(o.submitted, addressed{o.sender.Known(t.Key()), o.pending(t)})
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.submitted {
		if a := &o.submitted[i]; a.addr != "" {
			o.enqueue(a.addr, a.pending)
		} else {
			o.unrouted.push(a.task)
		}
	}
	o.staff()
	clear(o.submitted) // so that the buffer does not keep tasks alive that have ended
	o.submitted = o.submitted[:0]
}

// pending asks the task how urgent it is.
func (o *outbox) pending(t Task) pending {
	deadline, try := t.Urgency()
	return pending{task: t, by: deadline.Sub(o.epoch), try: try}
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
		var p pending
		if err != nil {
			o.sender.Fail(t, err)
		} else {
			p = o.pending(t)
		}

		o.mu.Lock()
		o.free++
		if err == nil {
			o.enqueue(addr, p)
		}
	}
	o.routers--
	o.free--
}

// enqueue puts a task into the stream that leads to its server. The caller holds o.mu.
func (o *outbox) enqueue(addr string, p pending) {
	to := destination{addr, bits.Len64(uint64(p.try))}
	s := o.streams[to]
	if s == nil {
		s = o.begin(to)
	}
	s.backlog.push(p)
	if s.overdue == s.senders {
		s.staff(o) // nobody else would come for it soon
	}
}

// begin returns a stream without tasks, and begins to drain it. The caller holds o.mu.
func (o *outbox) begin(to destination) *stream {
	s, _ := o.spare.Get().(*stream)
	if s == nil {
		s = new(stream)
	}
	*s = stream{to: to, backlog: s.backlog, senders: 1}
	o.streams[to] = s
	o.wg.Go(func() { s.drain(o) })
	return s
}

// end gives up a stream. The caller is its last sender, and holds o.mu.
func (o *outbox) end(s *stream) {
	delete(o.streams, s.to)
	o.spare.Put(s)
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
