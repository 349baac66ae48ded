// A wire: one connection to one server, and what is sent and received on it.

package server

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn/fault"
)

// wire is one connection to one server, used by one goroutine at a time. node.connect makes it,
// and it lasts as long as the connection.
//
// It uses a go-redis client that never has more than one connection, so that cutting a wire
// ends the request that is on it, and no other.
type wire struct {
	node *Node
	era  int64 // the gate's era when the dial began
	conn net.Conn

	pooled
	bundling
	clock clock // the clock of the server at the other end

	patience    time.Duration // that its server had when the last read began
	expires     time.Time     // zero if never
	credentials int64         // the version of the streamed credentials that the server has got

	alone  bool        // its user is the only caller that has a request on a wire of the node: see dial.Looker
	lates  int         // how many answers more are expected to be heard late: see link
	urgent bool        // a request of the batch is urgent
	proven bool        // true once a request was served
	broken atomic.Bool // of no more use; atomic because the node looks while a request is on the wire

	one      [1]*request   // the batch of a caller that sends alone
	batch    []*request    // the batch of flush
	commands []redis.Cmder // the commands of one pipeline
	watched
}

// watched is how the end of a context cuts the connection.
type watched struct {
	caller   context.Context // its end must cut the connection; nil if there is none, or once watch has arranged that
	unwatch  func() bool     // undoes what watch has arranged; nil before
	watchful bool            // it is for renewals: see run
	listens  time.Time       // until when a watchful wire waits for replies; zero: see Pace
}

// pooled is the connection of go-redis on which a wire sends.
type pooled struct {
	rdb   *redis.Client
	held  *redis.Conn // the connection of rdb, kept between requests
	since time.Time   // when held came out of rdb's pool
}

// detached is the context of requests on a wire that no caller's context bounds: the wire's own
// timeouts bound them.
var detached = context.Background()

func (w *wire) runOne(ctx context.Context, r *request) {
	w.one[0] = r
	w.run(ctx, w.one[:]...)
	w.one[0] = nil
}

// run sends the requests and records their answers. It returns the requests that had not been
// withdrawn; their callers must be notified. When ctx ends, run cuts the connection, whether it is
// writing or reading, so that a frozen server cannot hold the caller. A wire for callers arranges
// the cut only once the answer is late (see link). A wire for renewals arranges it from the start:
// in an idle process the timer of a late answer wakes a thread, which costs more than to arrange
// the cut.
func (w *wire) run(ctx context.Context, batch ...*request) (answered []*request) {
	if ctx != detached {
		w.caller = ctx
		if w.watchful {
			w.listens, _ = ctx.Deadline()
			w.watch()
		}
	}
	answered = w.send(ctx, batch)
	w.caller, w.listens = nil, time.Time{}
	if stop := w.unwatch; stop != nil {
		w.unwatch = nil
		if !stop() {
			w.broken.Store(true) // the connection must not reach the next caller
		}
	}
	return answered
}

// watch arranges that the end of the caller's context cuts the connection from now on.
func (w *wire) watch() {
	if w.caller == nil {
		return
	}
	w.unwatch = context.AfterFunc(w.caller, w.hangUp)
	w.caller = nil
}

// send writes the requests in one pipeline, reads every reply, and records the outcome of each
// request. It returns the requests that had not been withdrawn. ctx bounds the I/O by its
// deadline.
func (w *wire) send(ctx context.Context, batch []*request) []*request {
	now := time.Now()
	live := batch[:0]
	w.urgent = false
	for _, r := range batch {
		if r.claim(&w.clock, now, w.node.gate.pace.window(now)) {
			live = append(live, r)
			w.urgent = w.urgent || r.urgent
		}
	}
	if len(live) == 0 {
		return nil
	}
	w.compose(live, now)
	rdb := w.connection(now)
	if version := w.node.feed.Version(); version != w.credentials {
		w.credentials = version
		w.node.feed.Tell(ctx, rdb)
	}
	err := w.exchange(ctx, rdb, live)
	received := time.Now()
	w.took(received.Sub(now))
	if err == nil {
		w.node.gate.pace.heard(received.Sub(now))
	}
	for _, r := range live {
		if r.in != nil {
			continue
		}
		if failure := r.cmd.Err(); errors.Is(failure, fault.ErrSpent) {
			r.err = fault.Unsent{Err: failure}
		} else {
			r.answer(&w.clock, received)
		}
	}
	w.answerBundles(received)
	w.judge(ctx, live, err)
	return live
}

// took notes how long an answer took.
func (w *wire) took(d time.Duration) {
	if w.lates--; d >= late {
		w.lates = staysLate
	}
	w.lates = max(0, w.lates)
}

// judge decides what the outcome of an exchange means for the connection.
func (w *wire) judge(ctx context.Context, batch []*request, err error) {
	switch {
	case stale(batch):
		w.broken.Store(true)
		w.node.lost(w, unserved)
	case err != nil && !fault.IsReply(err):
		w.broken.Store(true)
		if !fault.Ended(ctx) {
			w.node.lost(w, w.lossBy(err))
		}
	default:
		if err != nil {
			w.since = time.Time{} // go-redis may refuse to use it again, as after a MOVED to the server that it leads to
		}
		w.prove(batch)
	}
}

// prove records that the server serves this connection if it has answered any of the requests.
func (w *wire) prove(batch []*request) {
	if !w.proven && slices.ContainsFunc(batch, (*request).served) {
		w.proven = true
		w.node.gate.good()
	}
}

// lossBy returns how the wire has failed, given the error. A connection that was made and then
// closed says nothing about the next one: the network may lose some, and a pause after each would
// keep all callers waiting.
func (w *wire) lossBy(err error) loss {
	if fault.IsTimeout(err) {
		return silent
	}
	return hungUp
}

// exchange sends the commands of the batch and reads their replies. If any of them must be
// replicated, it waits for the replicas on the same connection, once for all: WAIT counts what
// its own connection has written. It waits for half of the time in which a reply must come.
func (w *wire) exchange(ctx context.Context, rdb *redis.Conn, batch []*request) error {
	replicas := 0
	for _, r := range batch {
		replicas = max(replicas, r.call.Replicas)
	}
	commands := w.commandsOf(ctx, batch)
	if len(commands) == 1 && replicas == 0 {
		err := rdb.Process(ctx, commands[0])
		clear(commands)
		w.commands = commands
		return err
	}
	var acknowledged *redis.IntCmd
	if replicas > 0 {
		limit := max(1, (w.node.gate.pace.patience() / 2).Milliseconds()) // WAIT takes 0 as "for ever"
		acknowledged = redis.NewIntCmd(ctx, "wait", replicas, limit)
		commands = append(commands, acknowledged)
	}
	pipe := rdb.Pipeline()
	_ = pipe.BatchProcess(ctx, commands...)
	_, err := pipe.Exec(ctx)
	clear(commands)
	w.commands = commands
	if acknowledged != nil {
		for _, r := range batch {
			r.replicated, r.unwaited = int(acknowledged.Val()), acknowledged.Err()
		}
	}
	return err
}

// commandsOf returns the commands of the batch: one for each request that goes alone, and one for each bundle.
func (w *wire) commandsOf(ctx context.Context, batch []*request) []redis.Cmder {
	commands := w.commands[:0]
	for _, r := range batch {
		if r.Asking {
			commands = append(commands, redis.NewStatusCmd(ctx, "asking"))
		}
		switch {
		case r.in == nil:
			commands = append(commands, &r.cmd)
		case r.in.members[0] == r:
			commands = append(commands, &r.in.cmd)
		}
	}
	return commands
}

// stale reports whether the server answered that it is not the master (any more, or yet), or
// answered nonsense.
func stale(batch []*request) bool {
	for _, r := range batch {
		if r.err != nil && (fault.IsNoMaster(r.err) || errors.Is(r.err, fault.ErrGarbled)) {
			return true
		}
	}
	return false
}
