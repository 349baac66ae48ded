// Package inspect reports what is stored at a name in Redis, whatever synchronizer made it, and finds
// the names at which a synchronizer may stand.
package inspect

import (
	"context"
	"embed"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/pause"
)

//go:embed lua
var folder embed.FS

var lua = conn.Texts(folder)

var script = conn.NewScript("inspect", lua("beside", "kinds", "inspect"), conn.Always, conn.Mixed)

// The kinds that this package names; lua/kinds.lua has all.
const (
	rwLock  = "rwlock"
	permits = "permits"
	barrier = "barrier"
	slots   = "slots"
	shards  = "shards"
	unknown = "unknown"
)

// State is what is stored at a name.
type State struct {
	Kind      string
	At        time.Time     // when, on the server's clock
	Since     time.Time     // when the exclusive hold began, on that clock; zero if not known
	Remaining time.Duration // hold.NoExpiry: without end
	Waiters   int           // -1: not known
	Value     int64         // of permits, slots, shards or a limit: how many are free; of a barrier: how many have come
	Taken     int           // of permits, slots and shards
	All       int64         // permits, slots, shards, parties or a burst; 0: not known
	State     string        // of a once, a barrier or a lock
	Holders   []Holder
	Queue     []Waiter // the first of those that wait, in their order
	Pause     pause.Pause
}

// Waiter is one owner that waits.
type Waiter struct {
	Owner hold.Owner
	Since time.Time // on the server's clock; zero if not known
	Write bool
	Said  Said
}

// Holder is one field of a lock, or one permit.
type Holder struct {
	field     string
	Owner     hold.Owner // zero if the field is no Owner
	Permit    string     // the id of a permit, in hexadecimal digits
	Count     int
	Write     bool
	Number    int    // of a slot
	Over      bool   // of a slot: its lease is over, and it is in quarantine
	Shards    string // of a member of shards: which it has
	Remaining time.Duration
	Said      Said
}

// holdersPerCall is about how many holders of a lock one call looks at. That takes the server two
// or three milliseconds.
const holdersPerCall = 256

// Look returns what is at a name, as it is in Redis in that Space. life is how long tokens are kept. The answer is of one instant;
// but if more readers hold a lock than one call looks at, or as many permits are taken, the rest of
// the holders are of later instants.
func Look(ctx context.Context, m *conn.Manager, space keys.Space, name string, life time.Duration) (State, error) {
	call, err := ask(space, name, start)
	if err == nil {
		err = m.Run(ctx, call)
	}
	if err != nil {
		return State{}, err
	}
	s, cursor := parse(call, life)
	seen := make(map[string]bool) // a scan may return a field twice
	s.Holders = unseen(s.Holders, seen)
	for err == nil && cursor != start {
		if call, err = ask(space, name, cursor); err == nil {
			err = m.Run(ctx, call)
		}
		var more State
		if more, cursor = parse(call, life); err == nil && !s.add(more, seen) {
			break
		}
	}
	return s, err
}

const start = "0"

// add takes in some more holders of the same thing. It returns false if there is nothing to go on
// with.
func (s *State) add(more State, seen map[string]bool) bool {
	switch more.Kind {
	case unknown: // one of the fields is not a holder's
		*s = State{Kind: unknown, At: s.At, Remaining: s.Remaining, Waiters: -1, Pause: s.Pause}
		return false
	case s.Kind:
	default:
		return false // it has come free since
	}
	s.Holders = append(s.Holders, unseen(more.Holders, seen)...)
	if s.Since.IsZero() {
		s.Since = more.Since
	}
	return true
}

// unseen returns the holders that are not in seen, and adds them to it.
func unseen(holders []Holder, seen map[string]bool) []Holder {
	left := holders[:0]
	for _, h := range holders {
		if !seen[h.field] {
			seen[h.field] = true
			left = append(left, h)
		}
	}
	return left
}

func ask(space keys.Space, name, cursor string) (*conn.Call, error) {
	fair, err := space.ForFairLock(name)
	if err != nil {
		return nil, err
	}
	rw, _ := space.ForRW(name) // it has no keys where no read/write lock can be
	leased, _ := space.ForPermits(name)
	counted, _ := space.ForSemaphore(name)
	latch, err := space.ForLatch(name)
	if err != nil {
		return nil, err
	}
	leader, err := space.ForLeader(name)
	if err != nil {
		return nil, err
	}
	limit, err := space.ForLimit(name)
	if err != nil {
		return nil, err
	}
	turns, err := space.ForBarrier(name)
	if err != nil {
		return nil, err
	}
	numbered, err := space.ForSlots(name)
	if err != nil {
		return nil, err
	}
	shared, err := space.ForShards(name)
	if err != nil {
		return nil, err
	}
	return &conn.Call{
		Script: script,
		Keys:   []string{name},
		Args: []any{fair.Token, fair.Alive, rw.Waiting, rw.Timeouts, leased.Taken, latch.Generations,
			cursor, holdersPerCall, fair.Queue, rw.Readers, rw.Writers, leader.Record, leader.Names,
			space.OnceRecordAt(name), turns.Record, turns.Places, counted.All,
			numbered.Taken, numbered.Waiting, numbered.Alive, limit.Key, space.PauseAt(name), shared.Members, shared.Table,
			space.AskedAt(name)},
	}, nil
}

func (s State) exclusive() (Holder, bool) {
	for _, h := range s.Holders {
		if h.Write || len(s.Holders) == 1 && s.Kind != rwLock && s.Kind != slots && s.Kind != shards {
			return h, true
		}
	}
	return Holder{}, false
}

const (
	// slack is by how much the two instants that since compares may be out of order.
	slack = time.Second
	// putOff is how long after the expiry of its key was put off a token may be given, if it is the
	// time of its grant. A token that is not is kept longer.
	putOff = time.Hour
)

// since returns when the hold with that token began. The token is the server's time at the grant,
// unless the last token was ahead of that, by a clock that was set back or by another server's.
// Such a token does not agree with the expiry of its key, whose TTL began as life. A token that another
// Client keeps for longer or less does not agree either. Then nothing is known, and since returns the zero
// time.
func since(at time.Time, token string, ttl int64, life time.Duration) time.Time {
	micros, err := strconv.ParseInt(token, 10, 64)
	if err != nil || micros <= 0 {
		return time.Time{}
	}
	given := time.UnixMicro(micros)
	if given.After(at) {
		return time.Time{}
	}
	if ttl >= 0 {
		written := at.Add(time.Duration(ttl)*time.Millisecond - life)
		if after := given.Sub(written); after < -slack || after > putOff+slack {
			return time.Time{}
		}
	}
	return given
}
