// The common parts of the replies of scripts that grant, renew or change something with a time to
// live.

package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
)

// TTL returns the time to live in the reply of such a script: the third element, in ms. It is
// negative if there is no end.
func TTL(call *conn.Call) time.Duration {
	return time.Duration(call.Int(2)) * time.Millisecond
}

// Token returns the token in the reply of a script that has granted something, or has moved it.
func Token(call *conn.Call) int64 { return call.Int(3) }

// renewed returns what a call that has renewed one task has found out.
func renewed(call *conn.Call, err error) Renewed {
	return Renewed{
		Err:   err,
		Held:  call.Status() == conn.Done,
		TTL:   TTL(call),
		Sent:  call.Sent,
		Short: call.Short(),
		Cut:   time.Duration(call.Int(3)) * time.Millisecond,
	}
}

// Ends reports whether what was renewed has an end in Redis.
func (r *Renewed) Ends() bool { return r.TTL >= 0 }

// exceptions are the pairs in the reply of a script that renews many at once: see Part.
type exceptions struct {
	call *conn.Call
	at   int // index of the next pair
}

// exceptionsIn returns the pairs in the reply. It reports false unless they are complete, and their
// first numbers are indices of n members, in ascending order.
func exceptionsIn(call *conn.Call, n int) (e exceptions, ok bool) {
	const first = 2
	e = exceptions{call, first}
	last, i := int64(0), first
	for ; i+1 < call.Reply.Len(); i += 2 {
		index := call.Int(i)
		if index <= last || index > int64(n) {
			return e, false
		}
		last = index
	}
	return e, i == call.Reply.Len()
}

// next returns the time to live of the i-th member, in ms, which is length unless the reply names
// that member. The members must be asked for in order.
func (e *exceptions) next(i int, length int64) int64 {
	if e.call.Int(e.at) != int64(i+1) {
		return length
	}
	ttl := e.call.Int(e.at + 1)
	e.at += 2
	return ttl
}
