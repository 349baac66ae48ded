package conn

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// wire is one connection to one server, used by one goroutine at a time.
//
// It is a go-redis client that never holds more than one connection, so that
// the connection can be told apart: cutting a wire ends the request that is on
// it, and no other.
type wire struct {
	options *redis.Options // as tuned by wireOptions
	clock   *clock

	rdb *redis.Client // nil before the first use and after a reset

	mu   sync.Mutex // guards what follows
	conn net.Conn
	life int  // counts resets, so that a late hangUp does not cut a later connection
	cut  bool // this life's connection is cut, or will be when it is dialled
}

// detached is what requests on a wire run under when no caller's context
// bounds them: the wire's own timeouts do.
var detached = context.Background()

// run sends the requests and answers each. When ctx ends the connection is cut,
// so that a frozen server cannot hold the caller, wherever the exchange stands:
// dialling, in the handshake, writing or reading.
func (w *wire) run(ctx context.Context, batch ...*request) {
	if ctx.Done() == nil {
		w.send(ctx, batch)
		return
	}
	life := w.lifeNow()
	stop := context.AfterFunc(ctx, func() { w.hangUp(life) })
	w.send(ctx, batch)
	if !stop() {
		w.reset() // the connection must not reach the next caller
	}
}

// send writes the requests in one pipeline, reads every reply, and answers each
// request. ctx bounds the I/O by its deadline.
func (w *wire) send(ctx context.Context, batch []*request) {
	rdb := w.client()
	if err := w.learnTime(ctx, rdb); err != nil {
		for _, r := range batch {
			r.fail(unsent{err})
		}
		w.reset()
		return
	}

	live := batch[:0]
	for _, r := range batch {
		if r.prepare(w.clock) {
			live = append(live, r)
		}
	}
	if len(live) == 0 {
		return
	}
	err := exchange(ctx, rdb, live)
	received := time.Now()
	for _, r := range live {
		r.answer(w.clock, received)
	}
	if stale(live) || err != nil && !isReply(err) {
		w.clock.forget() // the next connection may lead to another server
		w.reset()
	}
}

// exchange sends the commands of the batch and reads their replies.
func exchange(ctx context.Context, rdb *redis.Client, batch []*request) error {
	if len(batch) == 1 && !batch[0].asking {
		return rdb.Process(ctx, batch[0].cmd)
	}
	pipe := rdb.Pipeline()
	for _, r := range batch {
		if r.asking {
			_ = pipe.Process(ctx, redis.NewStatusCmd(ctx, "asking"))
		}
		_ = pipe.Process(ctx, r.cmd)
	}
	_, err := pipe.Exec(ctx)
	return err
}

// learnTime asks for the server's time where it is not known.
func (w *wire) learnTime(ctx context.Context, rdb *redis.Client) error {
	if w.clock.known.Load() {
		return nil
	}
	t, err := rdb.Time(ctx).Result()
	if err != nil {
		return err
	}
	w.clock.observe(t.UnixMicro(), time.Now())
	return nil
}

// stale reports whether the server answered as one that is no longer, or not
// yet, the master.
func stale(batch []*request) bool {
	for _, r := range batch {
		if r.err != nil && isReadOnly(r.err) {
			return true
		}
	}
	return false
}

// client returns the wire's go-redis client, a new one after a reset.
func (w *wire) client() *redis.Client {
	if w.rdb != nil {
		return w.rdb
	}
	options := *w.options
	dial := options.Dialer
	options.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return w.attach(conn)
	}
	w.rdb = redis.NewClient(&options)
	return w.rdb
}

// attach notes the connection that the wire now runs on.
func (w *wire) attach(conn net.Conn) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	w.conn = conn
	return conn, nil
}

// hangUp cuts the connection under whoever uses it, if the wire is still in that
// life. It may be called from any goroutine; the wire is of no use until it is
// reset.
func (w *wire) hangUp(life int) {
	w.mu.Lock()
	if w.life != life {
		w.mu.Unlock()
		return
	}
	conn := w.conn
	w.cut = true
	w.mu.Unlock()
	if conn != nil {
		_ = conn.Close()
	}
}

func (w *wire) lifeNow() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.life
}

// reset drops the connection, so that the next request goes out on a new one,
// perhaps to another server. Only the wire's user calls it.
func (w *wire) reset() {
	if w.rdb != nil {
		_ = w.rdb.Close()
		w.rdb = nil
	}
	w.mu.Lock()
	w.conn, w.cut = nil, false
	w.life++
	w.mu.Unlock()
}
