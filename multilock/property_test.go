// This file plays random histories of MultiLocks that share locks beside a plain model: a MultiLock
// is granted when all its locks are free, and a MultiLock that is not granted has taken nothing.

package multilock_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/rapidtest"
	"github.com/holdfast-go/holdfast/internal/test/redises"
	"github.com/holdfast-go/holdfast/multilock"
)

// multiHistory records who holds which of the locks l0 to l3. Each of the two servers has two of
// them.
type multiHistory struct {
	w         *redises.World
	processes [2]*redises.Process
	holds     []multiHold
	tokens    [4]int64
}

// multiHold is one grant. Its locks are in the order in which the test gave them.
type multiHold struct {
	*multilock.Lease
	locks []int
}

// lengthOfMulti is short, because rapid plays no more than a day.
const lengthOfMulti = 3 * time.Second

func TestMultiLock_Histories(t *testing.T) {
	redises.Play(t, 2, func(t *testing.T, w *redises.World) {
		processes := [2]*redises.Process{w.Process(), w.Process()}
		rapidtest.Check(t, func(rt *rapid.T) {
			h := &multiHistory{w: w, processes: processes}
			rt.Repeat(map[string]func(*rapid.T){
				"try": h.try, "nested": h.nested, "release": h.release, "lose": h.lose, "time": rapidtest.Moments, "": h.check,
			})
			for _, held := range h.holds {
				_ = held.Release(t.Context())
			}
			time.Sleep(lengthOfMulti)
		})
	})
}

// of makes a MultiLock of those locks, with the Clients of process p.
func (h *multiHistory) of(p *redises.Process, locks []int) *multilock.MultiLock {
	members := make([]holdfast.Locker, len(locks))
	for i, n := range locks {
		members[i] = p.Clients[n%2].Mutex(fmt.Sprint("l", n), holdfast.Renewed(lengthOfMulti))
	}
	return holdfast.NewMultiLock(members...)
}

// taken reports whether any hold has one of the locks.
func (h *multiHistory) taken(locks ...int) bool {
	return slices.ContainsFunc(h.holds, func(held multiHold) bool {
		return slices.ContainsFunc(locks, func(n int) bool { return slices.Contains(held.locks, n) })
	})
}

func (h *multiHistory) try(rt *rapid.T) {
	locks := rapid.SliceOfNDistinct(rapid.IntRange(0, 3), 1, 4, rapid.ID[int]).Draw(rt, "locks")
	l, err := h.of(rapid.SampledFrom(h.processes[:]).Draw(rt, "process"), locks).TryLock(h.w.T.Context())
	synctest.Wait()
	if busy := h.taken(locks...); busy || err != nil {
		if !busy || !errors.Is(err, holdfast.ErrBusy) {
			rt.Fatalf("one of %v is held: %v, and: %v", locks, busy, err)
		}
		return
	}
	for i, token := range l.Tokens() {
		if token <= h.tokens[locks[i]] {
			rt.Fatalf("lock %d: token %d after %d", locks[i], token, h.tokens[locks[i]])
		}
		h.tokens[locks[i]] = token
	}
	h.holds = append(h.holds, multiHold{l, locks})
}

// nested enters a held MultiLock once more, and leaves it again. The process that does not hold it is refused.
func (h *multiHistory) nested(rt *rapid.T) {
	held := h.any(rt)
	entered := 0
	for _, p := range h.processes {
		inner, err := h.of(p, held.locks).TryLock(held.Context(h.w.T.Context()))
		if err == nil {
			entered++
			if err = inner.Release(h.w.T.Context()); err != nil || !slices.Equal(inner.Tokens(), held.Tokens()) {
				rt.Fatalf("tokens %v, nested %v, released: %v", held.Tokens(), inner.Tokens(), err)
			}
		} else if !errors.Is(err, holdfast.ErrBusy) {
			rt.Fatalf("nested: %v", err)
		}
	}
	if entered != 1 {
		rt.Fatalf("%d processes of two re-enter", entered)
	}
}

func (h *multiHistory) any(rt *rapid.T) multiHold {
	if len(h.holds) == 0 {
		rt.Skip()
	}
	return rapid.SampledFrom(h.holds).Draw(rt, "hold")
}

func (h *multiHistory) release(rt *rapid.T) { h.end(rt, h.any(rt), nil) }

// lose makes a server forget one lock. The whole MultiLock is then lost, and its release gives back
// all the other locks.
func (h *multiHistory) lose(rt *rapid.T) {
	held := h.any(rt)
	n := rapid.SampledFrom(held.locks).Draw(rt, "lock")
	h.w.Servers[n%2].Del(fmt.Sprint("l", n))
	<-held.Done()
	h.end(rt, held, holdfast.ErrLost)
}

// end releases a hold.
func (h *multiHistory) end(rt *rapid.T, held multiHold, want error) {
	if err := held.Release(h.w.T.Context()); !errors.Is(err, want) {
		rt.Fatalf("release: %v, want %v", err, want)
	}
	h.holds = slices.DeleteFunc(h.holds, func(other multiHold) bool { return other.Lease == held.Lease })
}

// check compares the holds of the model with what the servers have.
func (h *multiHistory) check(rt *rapid.T) {
	synctest.Wait()
	for _, held := range h.holds {
		if err := held.Err(); err != nil {
			rt.Fatalf("ended: %v", err)
		}
	}
	for n := range h.tokens {
		if there := h.w.Servers[n%2].Exists(fmt.Sprint("l", n)); there != h.taken(n) {
			rt.Fatalf("lock %d stands: %v, held: %v", n, there, !there)
		}
	}
}
