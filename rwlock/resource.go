// Both sides of the lock as package hold sees them: their calls, and how they wait.

package rwlock

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/lockhash"
)

// markLife is how long a waiter's mark counts after the waiter has last refreshed it. A waiter asks
// at least once in each line.PollBound, and so refreshes its mark three times in that time.
const markLife = 3 * line.PollBound

// base is what both sides of the lock have in common: its name, its keys and the line of its waiters.
type base struct {
	name      string
	line      string // the key of this process's line for it
	at        keys.RW
	tokenLife int64 // ms, 0 for ever
}

func (b *base) Name() string { return b.name }
func (b *base) Key() string  { return b.at.Hash }

// call returns a run of a script on the lock's own key alone. So it goes on in a slot on the move.
func (b *base) call(s *conn.Script, args ...any) *conn.Call {
	return &conn.Call{Script: s, Keys: []string{b.at.Hash}, Args: args}
}

// acquire returns a run of one of the two scripts that grant.
func (b *base) acquire(s *conn.Script, args ...any) *conn.Call {
	return &conn.Call{
		Script: s,
		Keys:   []string{b.at.Hash, b.at.Token, b.at.Readers, b.at.Writers, b.at.Waiting},
		Args:   args,
	}
}

// release returns a run of one of the two scripts that release, for any holder, also one whose id
// is not an Owner's.
func (b *base) release(s *conn.Script, holder, publish string) *conn.Call {
	return &conn.Call{
		Script: s,
		Keys:   []string{b.at.Hash, b.at.Readers, b.at.Writers, b.at.Waiting},
		Enough: 1,
		Args:   []any{holder, publish, b.at.Channel, b.at.Timeouts},
	}
}

// asking is a caller that asks for one side: since when, and whether it waits. In Redis a waiter
// has a mark, with the time since when it waits. So processes take turns in the order in which
// their waiters came.
type asking struct {
	since time.Time
	waits bool
	asked bool // it has asked before; it asks again only as the head of its line
}

// marks returns two arguments of the scripts that grant: how many ms the caller has waited, -1 if
// it only tries; and for how many ms its mark is to count. A caller that asks for the first time
// leaves no mark, since it may come to stand behind others of its process, where it cannot ask.
// With a mark, a waiter of another process might wait for it, while those before it in the line
// wait for that waiter.
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

// Marks implements hold.Marking.
func (a *asking) Marks() bool { return a.waits }

// linePrefix is what the line of a read/write lock begins with. No synchronizer has a name that
// begins so, and nothing else shares the line: neither a Mutex of the same name, which listens on
// another channel, nor a lock that shares the channel.
const linePrefix = "holdfast_rw:"

// waiting puts the readers and the writers of one process in one line. The first that came is its
// head, and asks for its own side.
func (a *asking) waiting(b *base, grant line.Grant, w *line.Want) {
	w.Key, w.Channel, w.Grant = b.line, b.at.Channel, grant
}

// writing is the write side as package hold sees it.
type writing struct {
	*base
	asking
}

func (w *writing) Kind() string           { return "rwlock.write" }
func (w *writing) Describe(on *line.Want) { w.waiting(w.base, line.Exclusive, on) }

// TokenKey is hold.Fenced's. It is for both sides: readers show tokens too, and a quorum writes
// them back.
func (b *base) TokenKey() string { return b.at.Token }

// RemadeLife is hold.Fenced's.
func (b *base) RemadeLife() int64 { return hold.RemadeLife(b.tokenLife) }

func (w *writing) Acquire(owner hold.Owner, length time.Duration) *conn.Call {
	waited, life := w.marks()
	return w.acquire(lockScript, owner.String(), length.Milliseconds(), w.tokenLife, w.at.Timeouts,
		waited, life)
}

func (w *writing) Recount(owner hold.Owner, leases int, length time.Duration) *conn.Call {
	return lockhash.Hash(w.at.Hash).RecountField(owner.String()+writes, leases, length)
}

func (w *writing) Renew(owner hold.Owner, length time.Duration) *conn.Call {
	return lockhash.Hash(w.at.Hash).RenewField(owner.String()+writes, length)
}

func (w *writing) Release(owner hold.Owner, publish string) *conn.Call {
	return w.release(releaseScript, owner.String(), publish)
}

// reading is the read side as package hold sees it.
type reading struct {
	*base
	asking
	under *hold.Lease // the write lease under which it asks; nil if there is none
}

func (r *reading) Kind() string           { return "rwlock.read" }
func (r *reading) Under() *hold.Lease     { return r.under }
func (r *reading) Describe(on *line.Want) { r.waiting(r.base, line.Shared, on) }

func (r *reading) Acquire(owner hold.Owner, length time.Duration) *conn.Call {
	waited, life := r.marks()
	writer := ""
	if r.under != nil {
		writer = r.under.Owner().String()
	}
	return r.acquire(rlockScript, owner.String(), length.Milliseconds(), writer, r.at.Timeouts,
		waited, life)
}

func (r *reading) Recount(owner hold.Owner, leases int, length time.Duration) *conn.Call {
	return r.call(rrecountScript, owner.String(), leases, length.Milliseconds(), r.at.Timeouts)
}

func (r *reading) Renew(owner hold.Owner, length time.Duration) *conn.Call {
	return r.call(rrenewScript, owner.String(), length.Milliseconds(), r.at.Timeouts)
}

func (r *reading) Release(owner hold.Owner, publish string) *conn.Call {
	return r.release(rreleaseScript, owner.String(), publish)
}
