// A request: one sending of a call.

package conn

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// request is one sending of a call. Its caller makes it; whoever sends it fills
// it in, and tells the caller last of all. A caller that leaves a request on its
// way never looks at the answer, and never uses the request again.
type request struct {
	call   *Call
	full   bool // send the source, not its hash: the server does not have it
	fewer  bool // send the keys that are enough
	asking bool // the slot is on its way to this server

	state  atomic.Int32
	queued bool          // the caller waits at done
	done   chan struct{} // holds one token when answered; nil until first queued

	numbers *redis.IntSliceCmd // what cmd is
	values  *redis.Cmd         // and what it is for a script that is Mixed

	// Written before state becomes sent.
	cmd      command
	sent     time.Time
	notAfter int64

	// Written before the token is in done.
	err        error
	replicated int   // how many replicas have what was written before, and by, this
	unwaited   error // why that is not known
}

// command is a go-redis command whose arguments can be set anew, so that it can
// be used again. go-redis keeps those that a command was made with to itself; but
// what it writes is what Args returns.
type command struct {
	redis.Cmder
	args []any
}

func (c *command) Args() []any { return c.args }

const (
	waiting   int32 = iota
	preparing       // the wire builds the command
	sent
	withdrawn
)

// prepare builds the command as of now. It reports false if the caller has
// withdrawn the request: then the call may be another's by now, and is not looked at.
func (r *request) prepare(clock *clock, now time.Time) bool {
	if !r.state.CompareAndSwap(waiting, preparing) {
		return false
	}
	r.sent, r.notAfter = now, clock.at(r.call.deadline(now))

	c := r.call
	keys := c.Keys
	if r.fewer {
		keys = keys[:c.Enough]
	}
	args := slices.Grow(r.cmd.args[:0], 4+len(keys)+len(c.Args))
	// By pointers, where a value would be copied to the heap to become an any.
	if r.full {
		args = append(args, "eval", &c.Script.source)
	} else {
		args = append(args, "evalsha", &c.Script.sha)
	}
	args = append(args, len(keys))
	for i := range keys {
		args = append(args, &keys[i])
	}
	args = append(args, &r.notAfter)
	r.cmd.args = append(args, c.Args...)
	if r.cmd.Cmder = r.numbers; c.Script.is(Mixed) {
		r.cmd.Cmder = r.values
	}
	r.state.Store(sent)
	return true
}

// withdraw takes back a request that is still in the queue. It reports false if
// it is on its way already: then what is known of that is there to be read.
func (r *request) withdraw() bool {
	for !r.state.CompareAndSwap(waiting, withdrawn) {
		if r.state.Load() != preparing {
			return false
		}
		runtime.Gosched() // no more than a few arguments are copied meanwhile
	}
	return true
}

func (r *request) isWithdrawn() bool { return r.state.Load() == withdrawn }

// answer takes in the reply.
func (r *request) answer(clock *clock, received time.Time) {
	if r.err = r.cmd.Err(); r.err == nil {
		switch micros, ok := r.time(); {
		case !ok || (micros == 0) != r.call.Script.is(Timeless):
			r.err = errGarbled
		case micros != 0:
			clock.observe(micros, received)
		}
	}
}

// time returns the server's clock in the reply, 0 if it does not tell it. Every script
// answers with a status and that, and then with what it has to say.
func (r *request) time() (micros int64, ok bool) {
	reply := r.reply()
	if _, ok = reply.Number(0); !ok {
		return 0, false
	}
	micros, ok = reply.Number(1)
	return micros, ok && micros >= 0
}

// fail tells the caller that the request came to nothing.
func (r *request) fail(err error) {
	r.err = err
	r.finish()
}

// finish tells the caller, who may use the request for something else from then
// on.
func (r *request) finish() {
	if r.queued {
		r.done <- struct{}{}
	}
}

// reply returns the script's answer.
func (r *request) reply() Reply {
	if !r.call.Script.is(Mixed) {
		return Reply{Numbers: r.numbers.Val()}
	}
	values, _ := r.values.Val().([]any)
	return Reply{Values: values}
}

// maxKept bounds the arguments of a request that is kept for use by another call. Those
// of a call that renews a hundred leases fit.
const maxKept = 256

// requests keeps those that were answered, so that most calls allocate none.
type requests struct{ pool sync.Pool }

func (rs *requests) get() *request {
	if r, ok := rs.pool.Get().(*request); ok {
		return r
	}
	return &request{numbers: redis.NewIntSliceCmd(detached), values: redis.NewCmd(detached)}
}

// put takes a request that its caller has the answer of: nobody else has it then.
func (rs *requests) put(r *request) {
	if cap(r.cmd.args) > maxKept {
		return
	}
	clear(r.cmd.args)
	r.numbers.SetErr(nil)
	r.numbers.SetVal(nil)
	r.values.SetErr(nil)
	r.values.SetVal(nil)
	r.call, r.err, r.replicated, r.unwaited = nil, nil, 0, nil
	r.full, r.fewer, r.asking, r.queued = false, false, false, false
	r.state.Store(waiting)
	rs.pool.Put(r)
}
