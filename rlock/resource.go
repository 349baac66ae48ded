// The lock as package hold sees it: its keys and calls.

package rlock

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/lockhash"
)

// placeKept is how long a process keeps its place in the queue after the last request that named
// it. A live process asks every line.PollBound. If the process has died, the lock is kept for it
// for at most that long.
const placeKept = 2 * line.PollBound

// openly is n if one release in n is left to those outside the queue, if there are any. It is a
// prime, so that it does not keep step with releases at round times.
const openly = 3

// resource is the lock as package hold sees it.
type resource struct{ lockhash.Lock }

var (
	_ hold.Queueing = (*resource)(nil)
	_ hold.Looking  = (*resource)(nil)
	_ hold.Movable  = (*resource)(nil)
	_ hold.Keeping  = (*resource)(nil)
)

const kind = "mutex"

var rules = lockhash.NewRules(kind, placeKept, openly)

func newResource(e *engine.Engine, name, key string, settings *hold.Settings) resource {
	return resource{lockhash.NewLock(e, name, key, rules.Keeping(settings.TokenKept()))}
}

// Grain implements hold.Queueing.
func (r *resource) Grain() line.Grain { return line.PerProcess }

func (r *resource) Describe(w *line.Want) { w.Key, w.Told = r.Key(), r }

// Acquire asks without taking a place, and does not look at the queue: a free lock goes to any
// caller.
func (r *resource) Acquire(owner hold.Owner, length time.Duration) *conn.Call {
	c := r.Engine.Smalls.Get(lockScript, r.Key(), r.TokenKey())
	c.SetText(0, owner.String())
	c.SetNumber(1, length.Milliseconds())
	c.SetNumber(2, *r.TokenLife())
	return &c.Call
}

// granted is the usual answer of lock.lua in full: the token is the time.
func granted(c *conn.Call, now int64) [conn.BundleWidth]int64 {
	length := *c.Args[1].(*int64)
	return [...]int64{conn.Done, now, length, now}
}

// Enter implements hold.Queueing.
func (r *resource) Enter(e hold.Entry) *conn.Call { return r.Queue.Enter(e, lockhash.OutOfTurn) }

// Look implements hold.Looking.
func (r *resource) Look(owner hold.Owner) *conn.Call { return r.LookIn(owner) }
