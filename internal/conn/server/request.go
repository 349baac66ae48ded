// A request: one sending of a call.

package server

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn/call"
	"github.com/holdfast-go/holdfast/internal/conn/fault"
)

// request is one sending of a call. The caller makes it. The goroutine that sends it fills it in,
// and notifies the caller last of all. A caller that leaves a request on its way never looks at the
// answer, and never uses the request again.
type request struct {
	call *call.Call
	Manner
	slot    int      // of the keys, in a cluster, if the request may join a bundle
	message *Message // send this, and no script; nil: send the call

	state  atomic.Int32
	queued bool          // the caller waits for done
	urgent bool          // a lease may end while it waits: see link
	done   chan struct{} // holds one token when answered; nil until first queued

	numbers *redis.IntSliceCmd // cmd for a script that answers with numbers
	values  *redis.Cmd         // cmd for a script that is Mixed or Brief
	brief   int64              // the answer in a bundle, if it was the usual one; otherwise 0

	// Written before state becomes sent.
	in       *carried // the bundle that it goes out in; nil if it goes alone
	cmd      command
	sent     time.Time
	notAfter int64

	// Written before the token is in done.
	err        error
	replicated int   // how many replicas have everything written up to and by this request
	unwaited   error // why that number is not known
}

// command is a go-redis command whose arguments can be replaced, so that it can be used again.
// go-redis does not let anybody change the arguments that a command was made with; but it
// writes what Args returns.
type command struct {
	redis.Cmder
	args []any
}

func (c *command) Args() []any { return c.args }

const (
	waiting   int32 = iota
	preparing       // a wire builds the commands of a pipeline
	sent
	withdrawn
)

// claim takes the request for a pipeline that is sent now. It reports false if the caller has
// withdrawn the request: then the call may already belong to another caller, and claim does not read
// it. window is how long the request may be on its way and still take effect.
func (r *request) claim(clock *clock, now time.Time, window time.Duration) bool {
	if !r.state.CompareAndSwap(waiting, preparing) {
		return false
	}
	r.sent, r.notAfter = now, clock.at(r.call.Deadline(now, window))
	return true
}

// compose builds the command of a request that goes alone.
func (r *request) compose() {
	if m := r.message; m != nil {
		r.cmd.Cmder, r.cmd.args = r.values, append(r.cmd.args[:0], m.command, m.channel, m.text)
		return
	}
	c, script := r.call, r.script()
	keys := c.Keys
	if r.Fewer {
		keys = keys[:c.Enough]
	}
	args := slices.Grow(r.cmd.args[:0], 4+len(keys)+len(c.Args))
	args = append(script.Command(args, r.Full), len(keys))
	for i := range keys {
		args = append(args, &keys[i]) // a pointer, because a value would be copied to the heap to become an any
	}
	args = append(args, &r.notAfter)
	r.cmd.args = append(args, c.Args...)
	if r.cmd.Cmder = r.numbers; script.Is(call.Mixed) || script.Brief() {
		r.cmd.Cmder = r.values
	}
}

// withdraw takes back a request that is still in the queue. It reports false if the request is
// already on its way; then its state, sent and notAfter may be read.
func (r *request) withdraw() bool {
	for !r.state.CompareAndSwap(waiting, withdrawn) {
		if r.state.Load() != preparing {
			return false
		}
		runtime.Gosched() // the wire only copies arguments meanwhile, at most those of a pipeline
	}
	return true
}

func (r *request) isWithdrawn() bool { return r.state.Load() == withdrawn }

func (r *request) answer(clock *clock, received time.Time) {
	if r.err = r.cmd.Err(); r.err == nil && r.message == nil {
		switch micros, ok := r.time(); {
		case !ok || (micros == 0) != r.call.Script.Is(call.Timeless):
			r.err = fault.ErrGarbled
		case micros != 0:
			clock.observe(micros, received)
		}
	}
}

// served reports whether the server has answered the request, be it with an error. An error that passes, such as
// LOADING, says that the server does not serve yet.
func (r *request) served() bool {
	return r.err == nil || fault.IsReply(r.err) && fault.RemedyOf(r.err) != fault.Passage
}

// time returns the server's clock in the reply, 0 if the script does not report it. ok is false
// if the reply is not that of a script: every script answers with a status and this time, and
// then with its own results.
func (r *request) time() (micros int64, ok bool) {
	if n, ok := r.usual(); ok {
		if r.script().Is(call.Timeless) {
			return 0, n == call.Done
		}
		return n, n > 0
	}
	reply := r.reply()
	micros, ok = reply.Head()
	return micros, ok && micros >= 0
}

// fail notifies the caller that the request has failed with err.
func (r *request) fail(err error) {
	r.err = err
	r.finish()
}

// finish notifies the caller that the request has its outcome. From then on the caller may use the
// request for something else.
func (r *request) finish() {
	if r.queued {
		r.done <- struct{}{}
	}
}

// settle records in the call what has become of a request that was answered or that failed.
func (r *request) settle() {
	c := r.call
	switch {
	case r.err == nil:
		c.Attempts++
		if n, usual := r.usual(); usual {
			c.AnswerUsually(n)
		} else {
			c.Reply = r.reply()
		}
		c.Sent = r.sent
		c.Acknowledge(r.replicated, r.unwaited)
	case errors.As(r.err, new(fault.Unsent)):
	case fault.MayHaveRun(r.err):
		c.Unheard(r.notAfter)
	default:
		c.Attempts++
	}
}

// leave records in the call that do has left a request behind, whose answer nobody will read.
func (r *request) leave() {
	if r.state.Load() == sent {
		r.call.Unheard(r.notAfter)
	}
}

// usual returns the script's answer if it is the usual one of a script that is Brief.
func (r *request) usual() (n int64, ok bool) {
	if r.brief != 0 {
		return r.brief, true
	}
	if !r.script().Brief() {
		return 0, false
	}
	n, ok = r.values.Val().(int64)
	return n, ok
}

// reply returns the script's answer as an array. It is called when usual has found that the answer
// is no usual one.
func (r *request) reply() call.Reply {
	values, _ := r.values.Val().([]any)
	if !r.script().Is(call.Mixed) {
		return call.Reply{Numbers: numbersOf(r.numbers.Val(), values)}
	}
	if r.Quiet {
		values, _ = split(values)
	}
	return call.Reply{Values: values}
}

// numbersOf returns the numbers; if there are none, the values as numbers, or nil if one of them is not a
// number.
func numbersOf(numbers []int64, values []any) []int64 {
	for _, v := range values {
		n, ok := v.(int64)
		if !ok {
			return nil
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// maxKept bounds the number of arguments of a request that is kept for another call. The
// arguments of a call that renews a hundred leases fit.
const maxKept = 256

// requests keeps answered requests for reuse, so that most calls allocate none.
type requests struct{ pool sync.Pool }

func (rs *requests) get() *request {
	if r, ok := rs.pool.Get().(*request); ok {
		return r
	}
	return &request{numbers: redis.NewIntSliceCmd(detached), values: redis.NewCmd(detached)}
}

// put takes back a request whose caller has read the answer. Then no other goroutine has it.
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
	r.Manner, r.queued, r.urgent = Manner{}, false, false
	r.slot, r.message, r.in, r.brief = 0, nil, nil, 0
	r.state.Store(waiting)
	rs.pool.Put(r)
}
