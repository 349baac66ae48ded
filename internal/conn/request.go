// A request: one sending of a call.

package conn

import (
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// request is one sending of a call. Its caller makes it; whoever sends it fills
// it in. A caller that leaves a request on its way never looks at the answer.
type request struct {
	call   *Call
	full   bool // send the source, not its hash: the server does not have it
	fewer  bool // send the keys that are enough
	asking bool // the slot is on its way to this server

	state atomic.Int32
	done  chan struct{} // closed when answered; nil where the caller sends by itself

	// Written before state becomes sent.
	cmd      *redis.Cmd
	sent     time.Time
	notAfter int64

	// Written before done is closed.
	err        error
	replicated int // how many replicas have what was written before, and by, this
}

const (
	queued int32 = iota
	sent
	withdrawn
)

// prepare builds the command as of now. It reports false if the caller has
// withdrawn the request.
func (r *request) prepare(clock *clock) bool {
	now := time.Now()
	r.sent, r.notAfter = now, clock.at(r.call.deadline(now))

	c := r.call
	keys := c.Keys
	if r.fewer {
		keys = keys[:c.Enough]
	}
	args := make([]any, 0, 4+len(keys)+len(c.Args))
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
	args = append(args, c.Args...)
	r.cmd = redis.NewCmd(detached, args...)
	return r.state.CompareAndSwap(queued, sent)
}

// withdraw takes back a request that is still in the queue. It reports false if
// it is on its way already.
func (r *request) withdraw() bool { return r.state.CompareAndSwap(queued, withdrawn) }

// answer takes in the reply and tells the caller.
func (r *request) answer(clock *clock, received time.Time) {
	if r.err = r.cmd.Err(); r.err == nil {
		if micros, ok := r.time(); ok {
			clock.observe(micros, received)
		} else {
			r.err = errGarbled
		}
	}
	r.finish()
}

// time returns the server's clock in the reply. Every script answers with a status
// and that, and then with what it has to say.
func (r *request) time() (micros int64, ok bool) {
	reply := r.reply()
	if len(reply) < 2 {
		return 0, false
	}
	if _, ok = reply[0].(int64); !ok {
		return 0, false
	}
	micros, ok = reply[1].(int64)
	return micros, ok && micros > 0
}

// fail tells the caller that the request came to nothing.
func (r *request) fail(err error) {
	r.err = err
	r.finish()
}

func (r *request) finish() {
	if r.done != nil {
		close(r.done)
	}
}

// reply returns the elements of the script's answer.
func (r *request) reply() []any {
	values, _ := r.cmd.Val().([]any)
	return values
}
