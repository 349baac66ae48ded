package rwlock

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/lease"
)

// tokenLife is how long the token of a name is kept that nobody write-locks. It
// is longer than any lease; without it the keys of names used once would stay
// for ever.
const tokenLife = 7 * 24 * time.Hour

// markLife is how long the mark of a waiter counts that no longer refreshes it.
// Waiters ask at least every engine.PollBound, and so refresh it three times.
const markLife = 3 * engine.PollBound

// place is the lock as both its sides see it.
type place struct {
	name      string
	line      string // the queue of this process for it
	at        keys.RW
	tokenLife int64 // ms, 0 for ever
}

func (p *place) Name() string { return p.name }
func (p *place) Key() string  { return p.at.Hash }

// call is a run of a script on the lock's own key alone: it goes on in a slot
// that is on the move.
func (p *place) call(s *conn.Script, args ...any) *conn.Call {
	return &conn.Call{Script: s, Keys: []string{p.at.Hash}, Args: args}
}

// acquire is a run of one of the two scripts that grant.
func (p *place) acquire(s *conn.Script, args ...any) *conn.Call {
	return &conn.Call{
		Script: s,
		Keys:   []string{p.at.Hash, p.at.Token, p.at.Readers, p.at.Writers, p.at.Waiting},
		Args:   args,
	}
}

// release is a run of one of the two scripts that release, for any holder, also
// one that is no Owner.
func (p *place) release(s *conn.Script, holder, publish string) *conn.Call {
	return p.call(s, holder, publish, p.at.Channel, p.at.Timeouts, p.at.Readers, p.at.Writers, p.at.Waiting)
}

// asking is one who asks for a side: since when, and whether it waits. Who waits
// is known in Redis by a mark that bears the time since when, so that processes
// that take turns do so in the order in which their waiters came.
type asking struct {
	since time.Time
	waits bool
	asked bool // once, so that it asks again as the first of its process
}

// marks returns what the scripts that grant are told of it: for how long it has
// waited, and how long its mark is to count. Who asks for the first time leaves
// none: it may come to stand behind others of its process, who would then wait for
// one that waits for its mark, while it cannot ask.
func (a *asking) marks() (waited, life int64) {
	if !a.waits {
		return -1, 0
	}
	if a.asked {
		life = markLife.Milliseconds()
	}
	a.asked = true
	return time.Since(a.since).Milliseconds(), life
}

// linePrefix is how the line of a read/write lock begins. No synchronizer has such a name,
// so the line is nobody else's: not that of a Mutex of the same name, which listens
// elsewhere, nor that of a lock which shares the channel.
const linePrefix = "holdfast_rw:"

// waiting puts readers and writers of one process in one line: whoever came
// first is its head, and asks for its own side.
func (a *asking) waiting(p *place, grant engine.Grant) engine.Waiting {
	return engine.Waiting{Key: p.line, Channel: p.at.Channel, Grant: grant, Marks: a.waits}
}

// writing is the write side as package lease sees it.
type writing struct {
	*place
	asking
}

func (w *writing) Kind() string            { return "rwlock.write" }
func (w *writing) Waiting() engine.Waiting { return w.waiting(w.place, engine.Exclusive) }

// TokenKey is lease.Fenced's: readers show tokens too, and a quorum writes them back.
func (p *place) TokenKey() string { return p.at.Token }

func (w *writing) Acquire(owner lease.Owner, length time.Duration) *conn.Call {
	waited, life := w.marks()
	return w.acquire(lockScript, owner.String(), length.Milliseconds(), w.tokenLife, w.at.Timeouts,
		waited, life)
}

func (w *writing) Recount(owner lease.Owner, leases int, length time.Duration) *conn.Call {
	return w.call(recountScript, owner.String(), leases, length.Milliseconds())
}

func (w *writing) Renew(owner lease.Owner, length time.Duration) *conn.Call {
	return w.call(renewScript, owner.String(), length.Milliseconds())
}

func (w *writing) Release(owner lease.Owner, publish string) *conn.Call {
	return w.release(releaseScript, owner.String(), publish)
}

// reading is the read side as package lease sees it.
type reading struct {
	*place
	asking
	under *lease.Lease // of the write side, where that is why it asks
}

func (r *reading) Kind() string            { return "rwlock.read" }
func (r *reading) Under() *lease.Lease     { return r.under }
func (r *reading) Waiting() engine.Waiting { return r.waiting(r.place, engine.Shared) }

func (r *reading) Acquire(owner lease.Owner, length time.Duration) *conn.Call {
	waited, life := r.marks()
	writer := ""
	if r.under != nil {
		writer = r.under.Owner().String()
	}
	return r.acquire(rlockScript, owner.String(), length.Milliseconds(), writer, r.at.Timeouts,
		waited, life)
}

func (r *reading) Recount(owner lease.Owner, leases int, length time.Duration) *conn.Call {
	return r.call(rrecountScript, owner.String(), leases, length.Milliseconds(), r.at.Timeouts)
}

func (r *reading) Renew(owner lease.Owner, length time.Duration) *conn.Call {
	return r.call(rrenewScript, owner.String(), length.Milliseconds(), r.at.Timeouts)
}

func (r *reading) Release(owner lease.Owner, publish string) *conn.Call {
	return r.release(rreleaseScript, owner.String(), publish)
}
