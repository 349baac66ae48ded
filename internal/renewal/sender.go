// The outbox: takes renewals to their servers, each server at its own pace.

package renewal

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// MaxBatch is the most tasks that one Send is given: beyond it a longer pipeline
	// saves little, and other clients of the server wait behind it.
	MaxBatch = 100

	// maxRouters bounds the goroutines that wait for Sender.Node.
	maxRouters = 16
)

// Sender carries renewals to servers. Its methods are called on several goroutines at
// once, and all but Known never on the scheduler's.
type Sender interface {
	// Known returns the server that holds key, or "" where that takes asking Node. It
	// neither does I/O nor waits.
	Known(key string) string

	// Node returns the server that holds key. It may do I/O: a call that waits does not
	// hold up tasks whose server is found at once, as long as fewer than 16 wait. ctx
	// ends with the Timeout of the task, or up to Resolution before, and with Close.
	Node(ctx context.Context, key string) (string, error)

	// Send renews the tasks of a batch, 1 to MaxBatch of them, on one server, and answers
	// each of them. It returns when ctx ends: with the smallest Timeout of the batch, of
	// which no other is twice as long, or with Close. The next batch for the same server waits for it, batches for others do
	// not. The batch is Send's only until it returns.
	Send(ctx context.Context, node string, batch []Task)

	// Fail answers a task that was not sent: Node returned err, or the scheduler was
	// closed (ErrClosed).
	Fail(t Task, err error)
}

// outbox finds the server of each task and sends to each server one batch after the
// other. Its goroutines start on demand and end when they have nothing left to do.
type outbox struct {
	sender Sender
	ctx    context.Context // ends with Close
	wg     *sync.WaitGroup
	nodes  []string // of the tasks that are submitted; the scheduler's goroutine's own

	mu       sync.Mutex // guards what follows, including each lane's queue
	unrouted queue
	routers  int // goroutines that ask Sender.Node
	free     int // how many of them are not waiting for its answer
	lanes    map[string]*lane
	idle     []*lane // without goroutine and node, kept for their buffers
}

// lane is what waits to be sent to one server.
type lane struct {
	queue queue
	batch []Task // the lane's goroutine's own
}

func newOutbox(ctx context.Context, s Sender, wg *sync.WaitGroup) *outbox {
	return &outbox{sender: s, ctx: ctx, wg: wg, lanes: make(map[string]*lane)}
}

// submit takes over tasks to be renewed. It does not wait. It is called on one goroutine,
// which is counted in the WaitGroup, so that Close does not miss those started here.
func (o *outbox) submit(tasks []Task) {
	if len(tasks) == 0 {
		return
	}
	o.nodes = o.nodes[:0]
	for _, t := range tasks {
		o.nodes = append(o.nodes, o.sender.Known(t.Key()))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, t := range tasks {
		if node := o.nodes[i]; node != "" {
			o.enqueue(node, t)
		} else {
			o.unrouted.push(t)
		}
	}
	o.staff()
}

// staff sees to it that tasks without a server do not all wait behind routers that wait
// themselves: while there are such tasks, one router is free. The caller holds o.mu.
func (o *outbox) staff() {
	if o.unrouted.len() > 0 && o.free == 0 && o.routers < maxRouters {
		o.routers++
		o.free++
		o.wg.Go(o.route)
	}
}

// route finds the servers of tasks until none is left.
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

		node, err := o.sender.Node(b.context(o.ctx, t.Timeout()), t.Key())
		if err != nil {
			o.sender.Fail(t, err)
		}

		o.mu.Lock()
		o.free++
		if err == nil {
			o.enqueue(node, t)
		}
	}
	o.routers--
	o.free--
}

// enqueue puts t into its server's lane. The caller holds o.mu.
func (o *outbox) enqueue(node string, t Task) {
	l := o.lanes[node]
	if l == nil {
		if n := len(o.idle); n > 0 {
			l, o.idle = o.idle[n-1], o.idle[:n-1]
		} else {
			l = &lane{batch: make([]Task, 0, MaxBatch)}
		}
		o.lanes[node] = l
		o.wg.Go(func() { o.drain(node, l) })
	}
	l.queue.push(t)
}

// drain sends what is in a lane, batch after batch, until it is empty.
func (o *outbox) drain(node string, l *lane) {
	for o.fill(node, l) {
		for rest := l.batch; len(rest) > 0; {
			n, timeout := alike(rest)
			o.send(node, rest[:n], timeout)
			rest = rest[n:]
		}
		clear(l.batch)
	}
}

// fill takes the next batch out of the lane's queue. If there is none it gives up the
// lane, so that the next task for this server opens another, and reports false.
func (o *outbox) fill(node string, l *lane) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	l.batch = l.batch[:0]
	for l.queue.len() > 0 && len(l.batch) < MaxBatch {
		l.batch = append(l.batch, l.queue.pop())
	}
	if len(l.batch) == 0 {
		delete(o.lanes, node)
		o.idle = append(o.idle, l)
		return false
	}
	return true
}

// alike puts the tasks first whose Timeout is less than twice the shortest, each kind in
// the order in which it was. It returns how many these are, and the shortest: a batch is
// given up when that is over, which a task that has more time should not bear.
func alike(tasks []Task) (n int, shortest time.Duration) {
	timeouts := make([]time.Duration, len(tasks))
	for i, t := range tasks {
		timeouts[i] = t.Timeout()
	}
	shortest = slices.Min(timeouts)
	if slices.Max(timeouts) < 2*shortest {
		return len(tasks), shortest
	}
	var long []Task
	for i, t := range tasks {
		if timeouts[i] < 2*shortest {
			tasks[n] = t
			n++
		} else {
			long = append(long, t)
		}
	}
	copy(tasks[n:], long)
	return n, shortest
}

func (o *outbox) send(node string, batch []Task, timeout time.Duration) {
	if o.ctx.Err() != nil {
		for _, t := range batch {
			o.sender.Fail(t, context.Cause(o.ctx))
		}
		return
	}
	ctx, cancel := context.WithTimeout(o.ctx, timeout)
	defer cancel()
	o.sender.Send(ctx, node, batch)
}

// bound makes the contexts of successive calls of Sender.Node. Most are answered from
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
