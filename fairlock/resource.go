// The lock as package hold sees it: its keys and calls.

package fairlock

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/lockhash"
)

// placeKept is how long a place in the queue is kept after the last request that named it. A live
// process sends one every line.PollBound.
const placeKept = 5 * time.Second

// resource is the lock as package hold sees it.
type resource struct {
	lockhash.Lock
	ahead int64 // see ahead
}

var (
	_ hold.Queueing = (*resource)(nil)
	_ hold.Looking  = (*resource)(nil)
	_ hold.Movable  = (*resource)(nil)
	_ hold.Keeping  = (*resource)(nil)
)

const kind = "fairmutex"

var rules = lockhash.NewRules(kind, placeKept, 0)

func newResource(e *engine.Engine, name, key string, settings *hold.Settings) resource {
	return resource{lockhash.NewLock(e, name, key, rules.Keeping(settings.TokenKept())), ahead(settings.Priority)}
}

// Grain implements hold.Queueing.
func (r *resource) Grain() line.Grain { return line.PerWaiter }

// Describe names the channels of the lock. Among them is the one for releases by clients that know of
// no queue.
func (r *resource) Describe(w *line.Want) { w.Key, w.Told = r.At().Queue, r }

// Acquire asks without taking a place.
func (r *resource) Acquire(owner hold.Owner, length time.Duration) *conn.Call {
	return r.Queue.Ask(owner, length, lockhash.InTurn)
}

// Enter implements hold.Queueing.
func (r *resource) Enter(e hold.Entry) *conn.Call {
	turn := lockhash.InTurn
	if e.Ask.Follows {
		turn = lockhash.PlaceOnly
	}
	call := r.Queue.Enter(e, turn)
	if r.ahead != 0 {
		call.Script, call.Args = enterScript, append(call.Args, r.ahead)
	}
	return call
}

// Look implements hold.Looking.
func (r *resource) Look(owner hold.Owner) *conn.Call { return r.LookIn(owner) }

func (r *resource) look(s *conn.Script, args ...any) *conn.Call {
	at := r.At()
	return &conn.Call{Script: s, Keys: []string{at.Queue, at.Alive}, Args: args}
}
