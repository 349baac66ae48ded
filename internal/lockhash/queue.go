// The queue of waiters for a lock, and the release that hands the lock to the first of them.

package lockhash

import (
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
)

var (
	enterScript   = conn.NewScript("lock/enter", lua("token", "life", "queue", "enter"), conn.Mixed)
	lookScript    = conn.NewScript("lock/look", lua("life", "look"))
	freeScript    = conn.NewScript("lock/free", lua("free"), conn.Timeless).Briefly(freed)
	releaseScript = conn.NewScript("lock/release", lua("token", "life", "queue", "release"), conn.Always)

	_ = conn.NewBundle("lock/looks", mostInBundle, lua("life"), conn.Part{Script: lookScript, Keys: 3, Args: 2, Common: []int{3}})
)

// Fenced returns the source of a script that grants a lock: token.lua, which makes the token grow,
// and then body.
func Fenced(body string) string { return lua("token") + body }

// NewBundle lets many calls go out as one that grant a lock by the script grant, or free one. grant
// is Fenced; its keys are the lock and the token; its arguments are the owner, the lease, and how long
// the token is kept.
func NewBundle(grant *conn.Script) *conn.Script {
	return conn.NewBundle("lock/bundle", mostInBundle, lua("token"),
		conn.Part{Script: grant, Keys: 2, Args: 3, Common: []int{3, 4}},
		conn.Part{Script: freeScript, Keys: 2, Args: 3, Common: []int{3}})
}

// mostInBundle is how many grants and releases, or looks, one script does. Each takes a server some
// 8 µs.
const mostInBundle = 12

// Entering returns the source of the script that Enter runs, for a kind of lock whose waiters bring
// more: that is prelude, which runs before enter.lua.
func Entering(prelude string) string {
	return lua("token", "life", "queue") + prelude + lua("enter")
}

// Releasing returns the source of the script that Release runs, for a kind of lock whose release
// does more: that is prelude, which runs before release.lua.
func Releasing(prelude string) string {
	return lua("token", "life", "queue") + prelude + lua("release")
}

// Turn says what a waiter does with a lock that it finds free.
type Turn int

const (
	// InTurn takes it if no waiter is before this one in the queue.
	InTurn Turn = iota
	// PlaceOnly leaves it to other waiters of its process that are before this one.
	PlaceOnly
	// OutOfTurn takes it, even if other waiters are before this one.
	OutOfTurn
)

// Queue is a lock with a queue. Plain locks and fair locks share it: they are the same lock, and a
// release hands it to the next waiter, of either kind. A Queue works out each time where the keys
// beside the lock are, because a process that holds many locks keeps many Queues.
type Queue struct {
	Hash
	Engine *engine.Engine
	*Rules
}

// Rules say how a queue is kept. Locks share them.
type Rules struct {
	kind      string
	place     time.Duration
	placeMS   int64 // as scripts take it
	tokenLife int64 // in ms too, as scripts take it
	openly    int

	kept atomic.Pointer[Rules] // what Keeping returned last: many locks share it
}

// NewRules returns the Rules of a kind of lock, "mutex" for example. place is how long a place is
// kept after the last request that named it. One release in openly is left to those outside the
// queue, such as Java, if there are any; 0 means that none is. Tokens are kept for
// hold.DefaultTokenLife.
func NewRules(kind string, place time.Duration, openly int) *Rules {
	return &Rules{kind: kind, place: place, placeMS: place.Milliseconds(), tokenLife: hold.DefaultTokenLife.Milliseconds(), openly: openly}
}

// Keeping returns the same rules, except that tokens are kept for life after their last grant; 0
// means for ever.
func (r *Rules) Keeping(life time.Duration) *Rules {
	if life.Milliseconds() == r.tokenLife {
		return r
	}
	if last := r.kept.Load(); last != nil && last.tokenLife == life.Milliseconds() {
		return last
	}
	kept := &Rules{kind: r.kind, place: r.place, placeMS: r.placeMS, tokenLife: life.Milliseconds(), openly: r.openly}
	r.kept.Store(kept)
	return kept
}

// TokenLife returns how long the token is kept, in ms, as scripts take it. It returns a pointer,
// because a number would be copied to the heap for each call.
func (r *Rules) TokenLife() *int64 { return &r.tokenLife }

// RemadeLife implements hold.Fenced.
func (r *Rules) RemadeLife() int64 { return hold.RemadeLife(r.tokenLife) }

// space returns what the keys begin with. A Queue that no Client has made has no Engine.
func (q *Queue) space() keys.Space {
	if q.Engine == nil {
		return ""
	}
	return q.Engine.Keys
}

// At returns where the lock's keys and channels are.
func (q *Queue) At() keys.FairLock { return q.space().FairLockAt(q.Key()) }

// TokenKey implements hold.Fenced.
func (q *Queue) TokenKey() string { return q.space().TokenAt(q.Key()) }

// Channels implements line.Told. It returns the channel of messages for everybody, the channel of
// messages for this Client, and one on which nothing is announced: a release counts its subscribers to
// tell Clients from Java.
func (q *Queue) Channels() []string {
	at := q.At()
	return []string{at.Channel, at.GrantTo(q.Engine.Client()), at.Grant}
}

// Enter returns the call that asks for the lock, and takes a place in the queue if the lock cannot
// be had.
func (q *Queue) Enter(e hold.Entry, turn Turn) *conn.Call { return q.enter(e, turn, &q.placeMS) }

// Ask returns the call that asks for the lock and takes no place.
func (q *Queue) Ask(owner hold.Owner, length time.Duration, turn Turn) *conn.Call {
	return q.enter(hold.Entry{Owner: owner, Length: length}, turn, new(int64))
}

// enter is Enter for a place that is kept for that many ms; 0 means that none is taken.
func (q *Queue) enter(e hold.Entry, turn Turn, place *int64) *conn.Call {
	var next hold.Owner
	if e.Ask.Next != 0 {
		next = hold.NewOwner(q.Engine.Client(), e.Ask.Next)
	}
	at := q.At()
	args := make([]any, 0, 11+len(e.Ask.Behind))
	args = append(args, e.Owner.String(), e.Length.Milliseconds(), q.TokenLife(),
		place, e.Ask.Seq, int(turn), e.Reserve, orNobody(next), e.Publish, at.Channel, at.Grant)
	for _, id := range e.Ask.Behind {
		args = append(args, id)
	}
	return &conn.Call{
		Script: enterScript,
		Keys:   []string{at.Hash, at.Token, at.Queue, at.Alive, at.Open},
		Args:   args,
	}
}

// LookIn returns the call that looks whether the owner should ask for the lock, and keeps its place.
// A kind of lock may use it as the Look of hold.Looking if a refused Enter of that kind keeps
// nothing but the place.
func (q *Queue) LookIn(owner hold.Owner) *conn.Call {
	at := q.At()
	return &conn.Call{
		Script: lookScript,
		Keys:   []string{at.Hash, at.Queue, at.Alive},
		Args:   []any{owner.String(), &q.placeMS},
	}
}

// Move implements hold.Movable.
func (q *Queue) Move(from, to hold.Owner, length time.Duration) *conn.Call {
	return &conn.Call{
		Script: moveScript,
		Keys:   []string{q.Key(), q.TokenKey()},
		Args:   []any{from.String(), to.String(), length.Milliseconds(), q.RemadeLife()},
	}
}

// Keeps implements hold.Queueing.
func (q *Queue) Keeps() time.Duration { return q.place }

// Free implements hold.Queueing.
func (q *Queue) Free(owner hold.Owner, publish string) *conn.Call {
	queue, channel := q.space().QueueAt(q.Key())
	c := q.Engine.Smalls.Get(freeScript, q.Key(), queue)
	c.Enough = 1
	c.SetText(0, owner.String())
	c.SetText(1, publish)
	c.SetText(2, channel)
	return &c.Call
}

// Release implements hold.Resource: it releases the lock, or leaves the queue.
func (q *Queue) Release(owner hold.Owner, publish string) *conn.Call {
	return q.release(owner.String(), publish, "", "")
}

// ReleaseAnd implements hold.Queueing: it is Release, and others leave the queue or join it.
func (q *Queue) ReleaseAnd(owner hold.Owner, publish string, leaves, joins hold.Owner) *conn.Call {
	return q.release(owner.String(), publish, orNobody(leaves), orNobody(joins))
}

// ReleaseOf is Release for any holder, even one that is not an Owner.
func (q *Queue) ReleaseOf(holder, publish string) *conn.Call {
	return q.release(holder, publish, "", "")
}

// releasing is a call of release.lua, all in one piece: in a lock that is handed from process to
// process, the pieces would be a quarter of the garbage.
type releasing struct {
	conn.Call
	keys  [5]string
	args  [9]any
	texts [6]string
}

func (q *Queue) release(holder, publish, leaves, joins string) *conn.Call {
	at := q.At()
	c := &releasing{
		keys:  [...]string{at.Hash, at.Token, at.Queue, at.Alive, at.Open},
		texts: [...]string{holder, publish, at.Channel, at.Grant, leaves, joins},
	}
	t := &c.texts
	c.args = [...]any{&t[0], &t[1], &t[2], &t[3], q.openly, &t[4], q.TokenLife(), &t[5], &q.placeMS}
	c.Call = conn.Call{Script: releaseScript, Keys: c.keys[:], Enough: 1, Args: c.args[:]}
	return &c.Call
}

// orNobody returns the owner as scripts take one that may be nobody: "" for the zero Owner.
func orNobody(o hold.Owner) string {
	if o.IsZero() {
		return ""
	}
	return o.String()
}
