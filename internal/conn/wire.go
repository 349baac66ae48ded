// A wire: one connection to one server, and what is sent and heard on it.

package conn

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
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
	lane    *lane
	era     int64 // of the lane, when this life began

	rdb   *redis.Client // nil before the first use and after a reset
	held  *redis.Conn   // the connection of rdb, kept between requests
	since time.Time     // when it came out of rdb's pool
	clock clock         // of the server at the other end
	ready atomic.Bool   // the connection is through its handshake: what fails now may have been sent

	one      [1]*request     // the batch of a caller who sends by itself
	batch    []*request      // the flusher's
	commands []redis.Cmder   // of one pipeline
	caller   context.Context // whose end is to cut the connection, while nothing sees to that
	unwatch  func() bool     // undoes what does, once there is something

	mu      sync.Mutex // guards what follows
	conn    net.Conn
	dialing context.CancelFunc // ends the dial that is under way
	life    int                // counts resets, so that what is late does not touch a later connection
	cut     bool               // this life's connection is cut, or will be when it is dialled
	spent   bool               // this life has dialled
}

// errSpent says that the connection of a wire has gone while nobody used it.
// go-redis would dial anew on the same client; but the next connection may lead
// to another server, with another clock, so it begins a new life of the wire.
var errSpent = errors.New("the connection was closed")

// detached is what requests on a wire run under when no caller's context
// bounds them: the wire's own timeouts do.
var detached = context.Background()

// runOne is run for one request.
func (w *wire) runOne(ctx context.Context, r *request) {
	w.one[0] = r
	w.run(ctx, w.one[:]...)
	w.one[0] = nil
}

// run sends the requests and answers each. When ctx ends the connection is cut,
// so that a frozen server cannot hold the caller, wherever the exchange stands:
// dialling, in the handshake, writing or reading. Only while the server has had no
// time to answer yet is that put off (see link).
func (w *wire) run(ctx context.Context, batch ...*request) {
	if w.rdb != nil && w.era != w.lane.era.Load() {
		w.reset()
	}
	if ctx != detached {
		w.caller = ctx
	}
	if !w.ready.Load() {
		w.watch()
	}
	batch = w.send(ctx, batch)
	w.caller = nil
	if stop := w.unwatch; stop != nil {
		w.unwatch = nil
		if !stop() {
			w.reset() // the connection must not reach the next caller
		}
	}
	for _, r := range batch {
		r.finish()
	}
}

// watch has the caller's end cut the connection from now on.
func (w *wire) watch() {
	if w.caller == nil {
		return
	}
	life := w.lifeNow()
	w.unwatch = context.AfterFunc(w.caller, func() { w.hangUp(life) })
	w.caller = nil
}

// send writes the requests in one pipeline, reads every reply, and takes in what
// became of each request. It returns those that were not withdrawn before. ctx
// bounds the I/O by its deadline.
func (w *wire) send(ctx context.Context, batch []*request) []*request {
	now := time.Now()
	rdb := w.connection(now)
	if !w.clock.known {
		if err := w.learnTime(ctx, rdb); err != nil {
			for _, r := range batch {
				r.err = unsent{err}
			}
			w.failed(ctx)
			return batch
		}
		now = time.Now()
	}

	live := batch[:0]
	for _, r := range batch {
		if r.prepare(&w.clock, now) {
			live = append(live, r)
		}
	}
	if len(live) == 0 {
		return nil
	}
	err := w.exchange(ctx, rdb, live)
	received := time.Now()
	sent := w.ready.Load()
	for _, r := range live {
		if failure := r.cmd.Err(); failure != nil && (!sent || errors.Is(failure, errSpent)) {
			r.err = unsent{failure}
		} else {
			r.answer(&w.clock, received)
		}
	}
	switch {
	case stale(live) || err != nil && !isReply(err):
		w.failed(ctx)
	case err != nil:
		w.since = time.Time{} // go-redis may not want it any more, as after a MOVED to where it leads
	}
	return live
}

// failed drops the connection, and puts the lane's others in doubt unless it was
// the caller's context that ended.
func (w *wire) failed(ctx context.Context) {
	if ctx.Err() == nil {
		w.lane.doubt()
	}
	w.reset()
}

// exchange sends the commands of the batch and reads their replies. If any is to
// be replicated, it waits for the replicas on the same connection, once for all:
// WAIT counts what its own connection has written. It waits for half of the time
// in which a reply must come.
func (w *wire) exchange(ctx context.Context, rdb *redis.Conn, batch []*request) error {
	replicas := 0
	for _, r := range batch {
		replicas = max(replicas, r.call.Replicas)
	}
	if len(batch) == 1 && !batch[0].asking && replicas == 0 {
		return rdb.Process(ctx, &batch[0].cmd)
	}
	commands := w.commands[:0]
	for _, r := range batch {
		if r.asking {
			commands = append(commands, redis.NewStatusCmd(ctx, "asking"))
		}
		commands = append(commands, &r.cmd)
	}
	var acknowledged *redis.IntCmd
	if replicas > 0 {
		acknowledged = redis.NewIntCmd(ctx, "wait", replicas, (w.options.ReadTimeout / 2).Milliseconds())
		commands = append(commands, acknowledged)
	}
	pipe := rdb.Pipeline()
	_ = pipe.BatchProcess(ctx, commands...)
	_, err := pipe.Exec(ctx)
	clear(commands)
	w.commands = commands
	if acknowledged != nil {
		for _, r := range batch {
			r.replicated = int(acknowledged.Val())
		}
	}
	return err
}

// learnTime asks for the server's time.
func (w *wire) learnTime(ctx context.Context, rdb *redis.Conn) error {
	t, err := rdb.Time(ctx).Result()
	if err != nil {
		return err
	}
	w.clock.observe(t.UnixMicro(), time.Now())
	return nil
}

// stale reports whether the server answered as one that is no longer, or not
// yet, the master, or as none at all.
func stale(batch []*request) bool {
	for _, r := range batch {
		if r.err != nil && (isNoMaster(r.err) || errors.Is(r.err, errGarbled)) {
			return true
		}
	}
	return false
}
