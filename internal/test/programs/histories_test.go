// The tests compare random histories of the mutex with a plain model of it:
// go test -run TestMutex_Histories -rapid.checks=100000 ./internal/test/programs

package programs

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/rapidtest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// historyFixed and historyRenewed are the lengths of the leases. Time passes in steps of
// historyStep, which never end within the margin by which a lease ends earlier here than in Redis.
const (
	historyFixed   = 5 * time.Second
	historyRenewed = 3 * time.Second
	historyStep    = 700 * time.Millisecond
)

// mutexHistory models the mutex as it should be: which process holds it, and with which leases.
type mutexHistory struct {
	w         *world.World
	processes []*world.Process

	of     int // the process that holds it
	leases []modelLease
	ended  []*holdfast.Lease // in whatever way
	until  time.Duration     // until then the key may stand without a lease on it
	tokens int64             // the last token
}

type modelLease struct {
	*holdfast.Lease
	ends time.Duration // 0: it is renewed
}

func TestMutex_Histories(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		processes := []*world.Process{w.Process(), w.Process(), w.Process()}
		rapidtest.Check(t, func(rt *rapid.T) {
			h := &mutexHistory{w: w, processes: processes}
			defer h.over(rt)
			rt.Repeat(map[string]func(*rapid.T){
				"try":     h.try,
				"nested":  h.nested,
				"release": h.release,
				"again":   h.again,
				"pass on": h.passOn,
				"force":   h.force,
				"delete":  h.delete,
				"time": func(rt *rapid.T) {
					h.pass(time.Duration(rapid.IntRange(1, 12).Draw(rt, "steps")) * historyStep)
				},
				"": h.check,
			})
		})
	})
}

// option draws how the program locks the mutex.
func (h *mutexHistory) option(rt *rapid.T) (holdfast.LeaseOption, time.Duration) {
	if rapid.Bool().Draw(rt, "fixed") {
		return holdfast.Fixed(historyFixed), h.w.Now() + historyFixed
	}
	return holdfast.Renewed(historyRenewed), 0
}

func (h *mutexHistory) held() bool { return len(h.leases) > 0 }

// any draws one of the leases that last.
func (h *mutexHistory) any(rt *rapid.T) int {
	if !h.held() {
		rt.Skip()
	}
	return rapid.IntRange(0, len(h.leases)-1).Draw(rt, "lease")
}

func (h *mutexHistory) try(rt *rapid.T) {
	i := rapid.IntRange(0, len(h.processes)-1).Draw(rt, "process")
	option, ends := h.option(rt)
	l, err := h.processes[i].Mutex(world.Name, option).TryLock(h.w.T.Context())
	switch {
	case err != nil && !h.held() && h.w.Now() >= h.until:
		rt.Fatalf("it is free, and refused: %v", err)
	case err != nil:
		return
	case h.held():
		rt.Fatalf("granted to two: %v beside %v", l.Owner(), h.leases[0].Owner())
	case l.Token() <= h.tokens:
		rt.Fatalf("token %d after %d", l.Token(), h.tokens)
	}
	h.of, h.tokens, h.until = i, l.Token(), 0
	h.leases = []modelLease{{l, ends}}
}

func (h *mutexHistory) nested(rt *rapid.T) {
	outer := h.leases[h.any(rt)]
	option, ends := h.option(rt)
	l, err := h.processes[h.of].Mutex(world.Name, option).Lock(outer.Context(h.w.T.Context()))
	if err != nil {
		rt.Fatalf("a nested lock: %v", err)
	}
	if l.Owner() != outer.Owner() || l.Token() != outer.Token() {
		rt.Fatalf("a nested lock is %v with token %d, the hold %v with %d", l.Owner(), l.Token(), outer.Owner(), outer.Token())
	}
	h.leases = append(h.leases, modelLease{l, ends})
}

func (h *mutexHistory) release(rt *rapid.T) {
	i := h.any(rt)
	l := h.leases[i]
	if err := l.Release(h.w.T.Context()); err != nil {
		rt.Fatalf("release of a lease that lasts: %v", err)
	}
	h.leases = slices.Delete(h.leases, i, i+1)
	h.ended = append(h.ended, l.Lease)
}

// again releases a lease that has ended. This release may remove only what the lease's own end has
// left in Redis.
func (h *mutexHistory) again(rt *rapid.T) {
	if len(h.ended) == 0 {
		rt.Skip()
	}
	l := rapid.SampledFrom(h.ended).Draw(rt, "ended")
	before, left := h.w.Mini.Snapshot(), h.w.Mini.HGet(world.Name, l.Owner().String()) != "" && !h.held()
	if err := l.Release(h.w.T.Context()); err == nil {
		rt.Fatal("released twice")
	}
	synctest.Wait() // the client settles in the background
	switch after := h.w.Mini.Snapshot(); {
	case after == before:
	case left && !h.w.Mini.Exists(world.Name):
		h.until = 0
	default:
		rt.Fatalf("the second release changed\n%s to\n%s", before, after)
	}
}

// passOn moves the hold to another process.
func (h *mutexHistory) passOn(rt *rapid.T) {
	l := h.leases[h.any(rt)]
	owner, err := l.Detach(h.w.T.Context())
	if len(h.leases) > 1 {
		if err == nil {
			rt.Fatal("one of several leases was detached")
		}
		return
	}
	if err != nil {
		rt.Fatalf("Detach: %v", err)
	}
	h.ended, h.leases = append(h.ended, l.Lease), nil
	i := rapid.IntRange(0, len(h.processes)-1).Draw(rt, "process")
	attached, err := h.processes[i].Mutex(world.Name, holdfast.Renewed(historyRenewed)).Attach(h.w.T.Context(), owner)
	if err != nil {
		rt.Fatalf("Attach: %v", err)
	}
	if attached.Token() != h.tokens {
		rt.Fatalf("token %d, attached with %d", h.tokens, attached.Token())
	}
	h.of, h.leases = i, []modelLease{{attached, 0}}
}

// force takes the lock from its holder, through the holder's own Client.
func (h *mutexHistory) force(rt *rapid.T) {
	i := h.any(rt)
	did, err := h.processes[h.of].MyLock.ForceRelease(h.w.T.Context())
	if err != nil || !did {
		rt.Fatalf("force release: %v, %v", did, err)
	}
	h.lost(rt, h.leases[i])
	h.until = 0
}

// delete lets Redis lose the lock. The holder learns of that from its next renewal, or when its
// lease is over.
func (h *mutexHistory) delete(rt *rapid.T) {
	l := h.leases[h.any(rt)]
	h.w.Mini.Del(world.Name)
	h.pass(8 * historyStep) // longer than any lease
	h.lost(rt, l)
	h.until = 0
}

// lost removes the hold from the model.
func (h *mutexHistory) lost(rt *rapid.T, l modelLease) {
	if l.Err() == nil {
		rt.Fatal("the lease outlives its loss")
	}
	for _, l := range h.leases {
		h.ended = append(h.ended, l.Lease)
	}
	h.leases = nil
}

// pass lets time go by. Fixed leases run out one by one. The hold ends with the last of them, and
// the key ends at most a lease later.
func (h *mutexHistory) pass(d time.Duration) {
	h.w.At(h.w.Now() + d)
	ran := h.held()
	h.leases = slices.DeleteFunc(h.leases, func(l modelLease) bool {
		over := l.ends != 0 && l.ends <= h.w.Now()
		if over {
			h.ended = append(h.ended, l.Lease)
		}
		return over
	})
	if ran && !h.held() {
		h.until = h.w.Now() + historyFixed
	}
}

// check compares the model with what the leases say, and with Redis.
func (h *mutexHistory) check(rt *rapid.T) {
	for _, l := range h.leases {
		if err := l.Err(); err != nil {
			rt.Fatalf("a lease has ended: %v", err)
		}
	}
	for _, l := range h.ended {
		if l.Err() == nil {
			rt.Fatal("a lease goes on that was released, or has run out")
		}
	}
	if !h.held() {
		return
	}
	held := h.leases[0].Lease
	count, err := h.processes[0].MyLock.HoldCount(h.w.T.Context(), held.Owner())
	if err != nil || count != len(h.leases) {
		rt.Fatalf("%d leases, and Redis counts %d, %v", len(h.leases), count, err)
	}
	if ttl := h.w.PTTL(world.Name); ttl <= 0 {
		rt.Fatalf("held, with a time to live of %v", ttl)
	}
}

// over ends the history with nothing held.
func (h *mutexHistory) over(rt *rapid.T) {
	for _, l := range h.leases {
		_ = l.Release(context.Background())
	}
	h.w.At(h.w.Now() + 20*historyStep)
	h.w.WantFree()
}
