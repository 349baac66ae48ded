// A term: one time for which an Election's work leads.

package leader

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/lease"
)

// Term is one period in which a candidate leads. Election.Run gives the Term to the work, together with a
// context that ends when the term ends. Any goroutine may call the methods of a Term, even after the end
// of the term. A test may call the work with a nil Term or with a zero Term. The methods of such a Term do
// nothing, and its token is 0.
type Term struct {
	election *Election
	lease    *lease.Lease
	ctx      context.Context // the work's
	end      context.CancelCauseFunc
	since    int64         // by the server's clock, in microseconds
	publish  string        // the command that publishes
	most     time.Duration // how long it lasts at most; 0: no bound

	returned chan struct{}  // closed when the work has returned
	watchers sync.WaitGroup // what runs beside the work
	endedAt  atomic.Int64   // when the context was seen to have ended, by the Client's age; 0: it was not

	mu    sync.Mutex
	alive time.Time     // by when the work must call Alive again; zero: it need not
	beat  chan struct{} // holds one signal: alive has changed
}

// Token returns the fencing token of the term. It is greater than the token of every earlier term of the
// same name. If the work sends the token with each write, the resource that the work writes to can refuse
// the writes of a former leader.
func (t *Term) Token() int64 { return engine.Made(t).lease.Token() }

// Deadline returns when, on this process's clock, the term ends if Holdfast does not renew the lease
// before.
func (t *Term) Deadline() time.Time { return engine.Made(t).lease.Deadline() }

// Resign ends the term. The context of the work ends with ErrResigned. When the work has returned, the
// next candidate leads, and Run campaigns again for this Election. To leave the election for good, return
// nil from the work instead of calling Resign. Resign does not wait for the end of the work, so the work
// may call Resign.
func (t *Term) Resign() {
	if t != nil && t.election != nil {
		t.resign("by its own work")
	}
}

func (t *Term) resign(why string) { t.end(t.over(why)) }

func (t *Term) over(why string) error {
	return t.election.failed("lead", fmt.Errorf("%w: %s", errs.Resigned, why))
}

// Alive says that the work is alive, and promises that the work will call Alive again within d. If the
// work does not keep this promise, the term ends with ErrResigned. So a candidate whose work hangs does
// not lead for ever. If the work that hangs also ignores the end of its context, Election.Check returns an
// error. Alive(0) ends the promise. A work that never calls Alive promises nothing, and its term does not
// end for this reason.
func (t *Term) Alive(d time.Duration) {
	t = engine.Made(t)
	t.mu.Lock()
	if d > 0 {
		t.alive = time.Now().Add(d)
	} else {
		t.alive = time.Time{}
	}
	t.mu.Unlock()
	select {
	case t.beat <- struct{}{}:
	default:
	}
}

// lasts reports whether the term goes on: nobody else can lead.
func (t *Term) lasts() bool {
	return t.ctx.Err() == nil && time.Now().Before(t.lease.Deadline())
}

// overFor returns for how long the term has been over though its work has not returned; 0 if it is
// not over.
func (t *Term) overFor() time.Duration {
	if t.ctx.Err() == nil {
		return 0
	}
	age := t.election.engine().Age()
	if ended := t.endedAt.Load(); ended != 0 {
		return age - time.Duration(ended)
	}
	return 1 // it has ended just now
}

// watch ends the term when its time is over, or when the work gives no sign of life. If the work
// does not return after the end of the term, watch logs that. It runs until the work has returned.
func (t *Term) watch() {
	var last time.Time // zero: no bound
	if t.most > 0 {
		last = time.Now().Add(t.most)
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now := time.Now()
		t.mu.Lock()
		alive := t.alive
		t.mu.Unlock()
		if passed(last, now) {
			t.resign(fmt.Sprintf("it has led for %v, its longest term", t.most.Round(time.Millisecond)))
		} else if passed(alive, now) {
			t.resign("its work gave no sign of life")
		}
		timer.Reset(untilFirst(now, last, alive))
		select {
		case <-t.returned:
			return
		case <-t.ctx.Done():
			t.endedAt.Store(max(1, int64(t.election.engine().Age())))
			t.overdue()
			return
		case <-t.beat:
		case <-timer.C:
		}
	}
}

// passed reports whether a time has passed by now. The zero time never does.
func passed(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// untilFirst returns how long it is from now until the first of the times that are not zero, at most
// an hour.
func untilFirst(now time.Time, times ...time.Time) time.Duration {
	first := time.Hour
	for _, t := range times {
		if !t.IsZero() {
			first = min(first, t.Sub(now))
		}
	}
	return first
}

// overdue waits for the work of a term that has ended. If that takes longer than a lease, it logs
// that: until then nobody else leads, or somebody else leads beside it.
func (t *Term) overdue() {
	e := t.election
	timer := time.NewTimer(e.config.hold.Length)
	defer timer.Stop()
	select {
	case <-t.returned:
	case <-timer.C:
		e.engine().Log.Warn("holdfast: the work of a term does not return, though the term has ended",
			"kind", kind, "name", engine.LogName(e.Name()), "identity", e.config.identity, "token", t.Token(),
			"since", engine.LogTime(e.config.hold.Length), "cause", errs.Plain(context.Cause(t.ctx)))
	}
}

func (t *Term) owner() string { return hold.Owner(t.lease.Owner()).String() }
