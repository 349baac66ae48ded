// The order in which callers wait for a Quorum.

package quorum

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/lease"
)

// turn is a caller's place among those that wait for a Quorum. Each server keeps the places that it
// hears of, in the order of the time waited. A caller asks for the lock only if some server knows
// nobody who has waited longer. So those that have waited longest ask often, and disturb each other
// less; and as each server has a first, there is always one that asks. The order is no part of what
// makes the lock safe: where servers do not answer, or have forgotten it, callers ask as if it did
// not exist.
//
// A caller that has just released, and asks again at once, would find the lock free, and the waiters asleep. So each
// grant finds out whether others wait, and where they do, its process does not ask first the next time.
type turn struct {
	quorum *Quorum
	key    string // of the places on the first server, for what its Client remembers; "" if its lock cannot be used
	id     string
	waits  bool // it is for a Lock; a TryLock takes no turn
	began  time.Time
	placed bool          // servers may have its place
	heard  int           // how many servers have returned its place at a time
	ahead  int           // how many were before it when it last looked
	pause  time.Duration // the last one; 0 if that has changed since
}

// placeFor is how long a server keeps a place after its waiter has last named it: longer than the longest pause and a
// round take together.
const placeFor = 2 * (maxPause + longestTry)

// turn returns the place of a caller that begins to wait now, or does not wait. It asks no server.
func (q *Quorum) turn(waits bool) *turn {
	client, number := q.members[0].Engine.NewOwner()
	key, _ := placesAt(q.members[0])
	return &turn{quorum: q, key: key, id: fmt.Sprintf("%s:%d", client, number), waits: waits, began: time.Now()}
}

// placesAt returns the key of the places on a server.
func placesAt(m Member) (string, error) {
	key := hold.KeyAt(m.Locker.(lease.Placed).Place()) // New has looked whether it says so
	if key == "" {
		return "", errs.BadArgument // its lock says what is wrong with it
	}
	return m.Engine.Keys.QuorumTurns(key), nil
}

// lines is where the first server's Client remembers whether others wait.
func (t *turn) lines() *line.Lines { return t.quorum.members[0].Engine.Lines }

// mayAsk reports whether the caller may ask for the lock now. At first it may, unless others were known to wait lately.
func (t *turn) mayAsk(ctx context.Context, first bool) bool {
	return !t.waits || first && !t.crowded() || t.draining() || t.mine(ctx)
}

// draining reports whether so many Clients are in Shutdown that only asking tells whether the caller may go on.
func (t *turn) draining() bool {
	left := slices.DeleteFunc(slices.Clone(t.quorum.members), func(m Member) bool { return m.Engine.Draining().Err() != nil })
	return len(left) < t.quorum.majority()
}

// unasked returns what a caller that has not asked for the lock knows of it: nil, if it has named no place.
func (t *turn) unasked() error {
	switch {
	case !t.placed:
		return nil
	case t.heard < t.quorum.majority():
		return fmt.Errorf("%d of %d servers said who waits: %w", t.heard, len(t.quorum.members), errs.NoQuorum)
	default:
		return fmt.Errorf("others have waited longer: %w", errs.Busy)
	}
}

// crowded reports whether others were known to wait lately.
func (t *turn) crowded() bool { return t.key != "" && t.lines().Awaited(t.key) }

// unknown is the place on a server that did not return one.
const unknown = -1

func known(before int) bool { return before != unknown }

// mine names the caller's place to the servers, and reports whether the caller may ask for the lock.
func (t *turn) mine(ctx context.Context) bool {
	first, waited := !t.placed, time.Since(t.began).Milliseconds()
	t.placed = true
	places := each(ctx, t.quorum.members, t.quorum.patience(), func(ctx context.Context, m Member) int {
		before, err := t.say(ctx, m, waited)
		if err != nil {
			return unknown
		}
		return before
	}, func(come []int) bool { return count(come, known) >= t.quorum.majority() })
	places = slices.DeleteFunc(places, func(before int) bool { return !known(before) })
	ahead := 0
	t.heard = max(t.heard, len(places))
	if len(places) >= t.quorum.majority() {
		ahead = slices.Min(places)
		if first && ahead == 0 {
			t.lines().ForgetAwaited(t.key) // all others would have waited longer
		}
	}
	if ahead != t.ahead {
		t.ahead, t.pause = ahead, 0
	}
	return ahead == 0
}

// refused takes in the error of a round that is no grant, and returns it. If ctx has cut the round
// short, the round says nothing, and refused returns last, the error of the round before.
func (t *turn) refused(ctx context.Context, last, err error) error {
	if !errors.Is(err, errs.Busy) {
		t.yield()
	}
	if last == nil || ctx.Err() == nil {
		return err
	}
	return last
}

// yield lets all the others come first. Otherwise a caller that is too far from the servers to get even a free lock
// would keep them waiting.
func (t *turn) yield() { t.began = time.Now() }

// next returns how long the caller pauses. Pauses begin at minPause, or at more if several callers are
// before it, and grow by half each time, up to maxPause.
func (t *turn) next() time.Duration {
	if t.pause == 0 {
		t.pause = minPause << min(max(t.ahead-1, 0), 8)
	} else {
		t.pause += t.pause / 2
	}
	t.pause = min(t.pause, maxPause)
	return t.pause
}

// over takes the caller's place away from the servers, in the background. A Lock that was granted without a place
// looks at one server. Both note whether others wait.
func (t *turn) over(granted bool) {
	members := t.quorum.members
	if !t.placed {
		if !t.waits || !granted {
			return
		}
		i := rand.N(len(members))
		members = members[i : i+1]
	}
	for _, m := range members {
		m.Engine.Background(func() {
			ctx, cancel := context.WithTimeout(context.Background(), placeFor)
			defer cancel()
			if others, err := t.say(ctx, m, -1); err == nil && others > 0 {
				t.lines().NoteAwaited(t.key)
			}
		})
	}
}

// say sends a server how long the caller has waited, in ms, or -1 if the caller waits no longer. It
// returns how many others are before the caller: all, if it waits no longer.
func (t *turn) say(ctx context.Context, m Member, waited int64) (before int, err error) {
	key, err := placesAt(m)
	if err != nil {
		return 0, err
	}
	call := &conn.Call{
		Script: turnScript,
		Keys:   []string{key},
		Args:   []any{t.id, waited, placeFor.Milliseconds()},
		Prompt: true,
	}
	if err := m.Engine.Conn.Run(ctx, call); err != nil {
		return 0, err
	}
	return int(call.Result()), nil
}
