// The outbox: it carries renewals to their servers, each server at its own pace.

package renewal

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// MaxBatch is the largest number of tasks that one Send is given. A longer pipeline would
	// save little, and other clients of the server would wait behind it.
	MaxBatch = 100

	// maxRouters bounds the number of goroutines that wait for Sender.Node.
	maxRouters = 16
)

// Sender carries renewals to servers. Its methods are called on several goroutines at once. All
// but Known are never called on the scheduler's goroutine.
type Sender interface {
	// Known returns what Node returns, or "" if finding that out takes a call of Node. It neither
	// does I/O nor waits.
	Known(key string) string

	// Node returns the address of the server that holds key. It may do I/O. A call that waits
	// does not hold up tasks whose server is found at once, as long as fewer than 16 calls wait.
	// ctx ends with Close, and with the Timeout of the task or up to Resolution before.
	Node(ctx context.Context, key string) (string, error)

	// Send renews the tasks of a batch, 1 to MaxBatch of them, on the server at addr, and answers
	// each of them. It must return when ctx ends. ctx ends with Close, and with the smallest Timeout
	// of the batch; every other Timeout in the batch is less than twice that. The next batch
	// for the same server waits for Send; batches for other servers do not. The batch belongs
	// to Send only until it returns.
	Send(ctx context.Context, addr string, batch []Task)

	// Fail answers a task that was not sent: Node returned err, or the scheduler was closed
	// (ErrClosed).
	Fail(t Task, err error)
}

// outbox finds the server of each task, and sends to each server one batch after the other. Its
// goroutines start on demand, and end when they have nothing left to do.
type outbox struct {
	sender Sender
	ctx    context.Context // ends with Close
	wg     *sync.WaitGroup
	addrs  []string // where the tasks being submitted go; only the scheduler's goroutine uses it

	mu       sync.Mutex // guards what follows, including each node's queue
	unrouted queue
	routers  int // goroutines that ask Sender.Node
	free     int // how many of those are not waiting for its answer
	nodes    map[string]*node
	idle     []*node // nodes without a goroutine and a server, kept for their buffers
}

// node holds the tasks that wait to be sent to one server.
type node struct {
	queue queue
	batch []Task // only the node's goroutine uses it
}

func newOutbox(ctx context.Context, s Sender, wg *sync.WaitGroup) *outbox {
	return &outbox{sender: s, ctx: ctx, wg: wg, nodes: make(map[string]*node)}
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

		addr, err := o.sender.Node(b.context(o.ctx, t.Timeout()), t.Key())
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

// enqueue puts t into the queue of its server's node. The caller holds o.mu.
func (o *outbox) enqueue(addr string, t Task) {
	n := o.nodes[addr]
	if n == nil {
		if last := len(o.idle) - 1; last >= 0 {
			n, o.idle = o.idle[last], o.idle[:last]
		} else {
			n = &node{batch: make([]Task, 0, MaxBatch)}
		}
		o.nodes[addr] = n
		o.wg.Go(func() { o.drain(addr, n) })
	}
	n.queue.push(t)
}

// drain sends the tasks of a node, batch after batch, until its queue is empty.
func (o *outbox) drain(addr string, n *node) {
	for o.fill(addr, n) {
		for rest := n.batch; len(rest) > 0; {
			count, timeout := alike(rest)
			o.send(addr, rest[:count], timeout)
			rest = rest[count:]
		}
		clear(n.batch)
	}
}

// fill takes the next batch from the node's queue. If the queue is empty, it gives up the node
// and reports false; the next task for this server then makes another node.
func (o *outbox) fill(addr string, n *node) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	n.batch = n.batch[:0]
	for n.queue.len() > 0 && len(n.batch) < MaxBatch {
		n.batch = append(n.batch, n.queue.pop())
	}
	if len(n.batch) == 0 {
		delete(o.nodes, addr)
		o.idle = append(o.idle, n)
		return false
	}
	return true
}

// alike moves the tasks whose Timeout is less than twice the shortest to the front, and keeps
// the order within both groups. It returns how many these are, and the shortest Timeout. A
// batch is given up when that has passed, so a task that has more time should not be in it.
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

func (o *outbox) send(addr string, batch []Task, timeout time.Duration) {
	if o.ctx.Err() != nil {
		for _, t := range batch {
			o.sender.Fail(t, context.Cause(o.ctx))
		}
		return
	}
	ctx, cancel := context.WithTimeout(o.ctx, timeout)
	defer cancel()
	o.sender.Send(ctx, addr, batch)
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
