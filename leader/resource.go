// The lead as package hold sees it: a lock in the layout of a FairMutex, whose queue is in the order
// of the priorities.

package leader

import (
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/lockhash"
)

const (
	kind = "leader" // for errors, spans and metrics
	// watchKind is the kind of those who wait for a change: observers, and leaders who wait to be
	// asked to resign.
	watchKind = "leader.watch"
)

// placeKept is how long a candidate's place is kept after the last request that named it. A live
// process sends one every line.PollBound. If the process has died, the lead is kept for it for at
// most that long.
const placeKept = 2 * line.PollBound

var rules = lockhash.NewRules(kind, placeKept, 0)

// resource is the lead as package hold sees it, for one candidate.
type resource struct {
	lockhash.Lock
	at    keys.Leader
	pause string // the key of the pause of its name
	say   *config
}

var _ hold.Queueing = (*resource)(nil)

func newResource(e *engine.Engine, name, key string, say *config) resource {
	r := resource{Lock: lockhash.NewLock(e, name, key, rules), say: say}
	if r.Usable("lead") == nil {
		r.at, _ = e.Keys.ForLeader(key) // NewLock has checked the name
		r.pause = e.Keys.PauseAt(key)
	}
	return r
}

// Grain implements hold.Queueing.
func (r *resource) Grain() line.Grain { return line.PerWaiter }

// Describe gives the candidates a line of their own: no lock of the name stands in it. Those with Preempt have
// another for each priority, since only the head of a line asks, by its own priority: behind one without, or of a
// lower priority, they would not ask the leader to give way.
func (r *resource) Describe(w *line.Want) {
	w.Key, w.Told = r.at.Record, r
	if r.say.preempt {
		w.Key += " preempts " + strconv.Itoa(r.say.priority)
	}
}

// Acquire asks without taking a place. A candidate never does that.
func (r *resource) Acquire(owner hold.Owner, length time.Duration) *conn.Call {
	return r.Ask(owner, length, lockhash.InTurn)
}

// Enter implements hold.Queueing.
func (r *resource) Enter(e hold.Entry) *conn.Call {
	turn := lockhash.InTurn
	if e.Ask.Follows {
		turn = lockhash.PlaceOnly
	}
	// It is known by now: see Election.campaign.
	e.Publish = r.Engine.Conn.KnownPublishCommand()
	call := r.Queue.Enter(e, turn)
	preempt := 0
	if r.say.preempt {
		preempt = 1
	}
	call.Script = enterScript
	call.Keys = append(call.Keys, r.at.Record, r.at.Names)
	call.Args = append(call.Args, r.say.priority, r.at.Changes, preempt, r.say.identity)
	return call
}

// Release implements hold.Resource.
func (r *resource) Release(owner hold.Owner, publish string) *conn.Call {
	return r.retiring(r.Queue.Release(owner, publish))
}

// ReleaseAnd implements hold.Queueing.
func (r *resource) ReleaseAnd(owner hold.Owner, publish string, leaves, joins hold.Owner) *conn.Call {
	return r.retiring(r.Queue.ReleaseAnd(owner, publish, leaves, joins))
}

// Free is Release: terms end seldom, and somebody mostly waits.
func (r *resource) Free(owner hold.Owner, publish string) *conn.Call {
	return r.Release(owner, publish)
}

// retiring makes a release also delete the record of who leads, or the candidate's name, that the
// owner has written.
func (r *resource) retiring(call *conn.Call) *conn.Call {
	call.Script = releaseScript
	call.Keys = append(call.Keys, r.at.Record, r.at.Names)
	call.Args = append(call.Args, r.at.Changes)
	return call
}

// recordLife is how long the record of a lead stays at most after the lead was lost.
const recordLife = 5 * time.Second

// tell returns the call by which the owner writes who it is. since is when it began to lead, in
// microseconds of the server's clock, or 0.
func (r *resource) tell(owner string, publish string, token, since int64) *conn.Call {
	life := max(r.say.hold.Length, r.say.hold.Length+recordLife) // the sum may overflow
	return &conn.Call{
		Script: tellScript,
		Keys:   []string{r.at.Hash, r.at.Record, r.at.Names, r.at.Queue, r.pause},
		Args: []any{owner, publish, r.at.Changes, token, since, life.Milliseconds(),
			r.say.priority, r.say.identity, r.say.value},
	}
}

func (r *resource) look() *conn.Call {
	return &conn.Call{Script: lookScript, Keys: []string{r.at.Hash, r.at.Record}}
}

// ask returns the call that asks the leader of the term with that token to resign.
func (r *resource) ask(token int64, publish, who string) *conn.Call {
	return &conn.Call{
		Script: askScript,
		Keys:   []string{r.at.Hash, r.at.Record},
		Args:   []any{token, publish, r.at.Changes, who},
	}
}

// pageSize is how many places in the queue one call looks at.
const pageSize = 256

// candidates returns the call that looks at the queue from that place on.
func (r *resource) candidates(from string) *conn.Call {
	return &conn.Call{
		Script: candidatesScript,
		Keys:   []string{r.at.Queue, r.at.Alive, r.at.Names},
		Args:   []any{from, pageSize},
	}
}
