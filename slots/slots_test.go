// These tests show who gets which number, and when, on virtual time.

package slots_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/slots"
)

const (
	name     = "worker-id"
	taken    = "holdfast_slots:{worker-id}"
	tokenKey = "holdfast_slots_token:{worker-id}"

	soon = 10 * time.Millisecond
	poll = 1250*time.Millisecond + soon
)

// play is world.Play. At the end nothing but the token may be left of the slots.
func play(t *testing.T, scene func(t *testing.T, w *world.World)) {
	t.Helper()
	world.Play(t, func(t *testing.T, w *world.World) {
		scene(t, w)
		time.Sleep(soon) // what is given up is given up in the background
		for _, p := range w.Processes {
			p.Close()
		}
		if w.Mini.Exists(tokenKey) && w.Mini.TTL(tokenKey) <= 0 {
			t.Error("the token stands without an expiry")
		}
	})
}

// get acquires without waiting, and fails the test unless it gets the number n.
func get(t *testing.T, s *slots.Slots, n int) slots.Slot {
	t.Helper()
	slot, err := s.TryAcquire(t.Context())
	if err != nil || slot.Number() != n {
		t.Fatalf("number %d, %v, want %d", slot.Number(), err, n)
	}
	return slot
}

// busy fails the test unless all numbers are taken, as others see it.
func busy(t *testing.T, s *slots.Slots) {
	t.Helper()
	if slot, err := s.TryAcquire(t.Context()); !errors.Is(err, holdfast.ErrBusy) {
		t.Fatalf("number %d, %v, want ErrBusy", slot.Number(), err)
	}
}

// release releases, and fails the test if that fails.
func release(t *testing.T, all ...slots.Slot) {
	t.Helper()
	for _, s := range all {
		redistest.Check(t, s.Release(t.Context()))
	}
}

// waiter is an Acquire on a goroutine of its own.
type waiter struct {
	*world.Attempt
	slot slots.Slot
}

// wait has s acquire, and returns when it waits, or is done.
func wait(ctx context.Context, w *world.World, s *slots.Slots) *waiter {
	a := &waiter{}
	a.Attempt = w.Try(func() (*lease.Lease, error) {
		var err error
		a.slot, err = s.Acquire(ctx)
		return a.slot.Lease, err
	})
	synctest.Wait()
	return a
}

// gets fails the test unless the waiter gets the number n within d.
func (a *waiter) gets(t *testing.T, n int, d time.Duration) slots.Slot {
	t.Helper()
	begin := time.Now()
	_, err := a.Result()
	if err != nil || a.slot.Number() != n || time.Since(begin) > d {
		t.Fatalf("number %d, %v, after %v, want %d within %v", a.slot.Number(), err, time.Since(begin), n, d)
	}
	return a.slot
}

// pending fails the test if one of the waiters is done.
func pending(t *testing.T, all ...*waiter) {
	t.Helper()
	synctest.Wait()
	for i, a := range all {
		if !a.Pending() {
			t.Fatalf("waiter %d is done: number %d", i, a.slot.Number())
		}
	}
}

func TestEachHolderHasTheLowestNumberThatIsFree(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		mine, theirs := p.Slots(name, 3), q.Slots(name, 3)
		a, b, c := get(t, mine, 0), get(t, theirs, 1), get(t, mine, 2)
		if a.Token() >= b.Token() || b.Token() >= c.Token() {
			t.Errorf("tokens %d, %d, %d", a.Token(), b.Token(), c.Token())
		}
		busy(t, theirs)
		if free, err := mine.Free(t.Context()); free != 0 || err != nil {
			t.Errorf("%d free, %v", free, err)
		}
		w.At(5 * time.Minute) // each is renewed
		release(t, b)
		d := get(t, mine, 1)
		if d.Token() <= c.Token() {
			t.Errorf("the token %d after %d", d.Token(), c.Token())
		}
		release(t, a, c, d)
		if w.Mini.Exists(taken) {
			t.Error("something is left when no number is taken")
		}
	})
}

func TestWaitersTakeTurnsAcrossProcesses(t *testing.T) {
	for _, mute := range []bool{false, true} {
		t.Run(fmt.Sprintf("mute=%v", mute), func(t *testing.T) {
			play(t, func(t *testing.T, w *world.World) {
				first := get(t, w.Process().Slots(name, 1), 0)
				var all []*waiter
				for range 4 {
					p := w.Process()
					if mute {
						p.Mute()
						defer p.Unmute()
					}
					all = append(all, wait(t.Context(), w, p.Slots(name, 1)))
					time.Sleep(2 * time.Second) // each has its mark
				}
				within := soon
				if mute {
					within = poll
				}
				stranger := w.Process().Slots(name, 1)
				release(t, first)
				for i, a := range all {
					slot := a.gets(t, 0, within)
					busy(t, stranger)
					pending(t, all[i+1:]...)
					release(t, slot)
				}
			})
		})
	}
}

// Nobody who only tries passes one that waits, and nobody waits for one that has died.
func TestATryDoesNotOvertake(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q, r := w.Process(), w.Process(), w.Process()
		held := get(t, p.Slots(name, 1), 0)
		a := wait(t.Context(), w, q.Slots(name, 1))
		time.Sleep(2 * time.Second)
		q.Unplug(true)
		release(t, held)
		busy(t, r.Slots(name, 1))
		time.Sleep(4 * time.Second)
		release(t, get(t, r.Slots(name, 1), 0))
		q.Unplug(false)
		release(t, a.gets(t, 0, 2*time.Second))
	})
}

// Those that have died or lost their number leave it in quarantine. Who releases it does not.
func TestQuarantine(t *testing.T) {
	const length = 10 * time.Second
	// renewals has each renewal meet that fault.
	renewals := func(p *world.Process, fault redistest.Fault) {
		p.Always(world.SlotsRenewRun, fault)
	}
	dies := func(_ *testing.T, p *world.Process, _ slots.Slot) { p.Unplug(true) }
	released := func(t *testing.T, s slots.Slot) {
		<-s.Done()
		redistest.Is(t, "Release", s.Release(t.Context()), holdfast.ErrLost)
	}
	for what, tc := range map[string]struct {
		lose  func(t *testing.T, p *world.Process, s slots.Slot)
		rests time.Duration
		grace time.Duration
		least time.Duration // how long nobody else has it
	}{
		"its process dies":                       {dies, time.Minute, 0, time.Minute + length},
		"its process dies, and it need not rest": {dies, 0, 0, length},
		"it is not renewed, and released when it is lost": {func(t *testing.T, p *world.Process, s slots.Slot) {
			renewals(p, redistest.ReplyError("ERR not now"))
			released(t, s)
		}, time.Minute, 0, time.Minute + length},
		"it is not renewed, and released when its grace begins": {func(t *testing.T, p *world.Process, s slots.Slot) {
			renewals(p, redistest.ReplyError("ERR not now"))
			released(t, s)
		}, time.Minute, length / 2, time.Minute + length/2},
		"a server says that it is gone, and it is released": {func(t *testing.T, p *world.Process, s slots.Slot) {
			renewals(p, redistest.Reply(fmt.Sprintf("*2\r\n:0\r\n:%d\r\n", time.Now().UnixMicro())))
			released(t, s)
		}, time.Minute, 0, time.Minute + length/3},
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, w *world.World) {
				p, q := w.Process(), w.Process()
				s := q.Slots(name, 1)
				held := get(t, p.Slots(name, 1, slots.Quarantine(tc.rests), slots.Lease(holdfast.Renewed(length), holdfast.Grace(tc.grace))), 0)
				begin := w.Now()
				tc.lose(t, p, held)
				a := wait(t.Context(), w, s)
				a.gets(t, 0, tc.rests+length)
				redistest.Is(t, "the holder, notified first", held.Err(), holdfast.ErrLost)
				if after := w.Now() - begin; after < tc.least-length/20 || after > tc.least+length/20 {
					t.Errorf("given out again after %v, want %v", after, tc.least)
				}
				release(t, a.slot)
				release(t, get(t, s, 0))
				_ = held.Release(t.Context())
				p.Unplug(false)
			})
		})
	}
	t.Run("it is released", func(t *testing.T) {
		play(t, func(t *testing.T, w *world.World) {
			s := w.Process().Slots(name, 1, slots.Quarantine(time.Minute))
			release(t, get(t, s, 0))
			release(t, get(t, s, 0))
		})
	})
}

func TestAnotherSizeIsNoticed(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		held := get(t, p.Slots(name, 3), 0)
		for _, acquire := range []func(context.Context) (slots.Slot, error){q.Slots(name, 4).Acquire, q.Slots(name, 2).TryAcquire} {
			if slot, err := acquire(t.Context()); !errors.Is(err, holdfast.ErrBadArgument) {
				t.Errorf("number %d, %v", slot.Number(), err)
			}
		}
		release(t, held)
		release(t, get(t, q.Slots(name, 4), 0)) // nobody has a number any more
	})
}

func TestForceRelease(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		mine, theirs := p.Slots(name, 2), q.Slots(name, 2, slots.Quarantine(time.Hour))
		a, b := get(t, mine, 0), get(t, theirs, 1)
		for n, want := range map[int]lease.Owner{0: a.Owner(), 1: b.Owner()} {
			i, err := p.Inspect(t.Context(), name)
			if err != nil || i.Kind != holdfast.KindSlots || i.All != 2 || len(i.Holders) < 1 {
				t.Fatalf("%+v, %v", i, err)
			}
			at := slices.IndexFunc(i.Holders, func(h holdfast.Holder) bool { return h.Number == n })
			if at < 0 || i.Holders[at].Owner != want {
				t.Errorf("%d: %+v", n, i.Holders)
			}
			if took, err := mine.ForceRelease(t.Context(), n, lease.Owner{}); took || err != nil {
				t.Errorf("%d, from another: %v, %v", n, took, err)
			}
			if took, err := mine.ForceRelease(t.Context(), n, want); !took || err != nil {
				t.Errorf("%d: %v, %v", n, took, err)
			}
			if took, err := mine.ForceRelease(t.Context(), n); took || err != nil {
				t.Errorf("%d again: %v, %v", n, took, err)
			}
		}
		redistest.Is(t, "the lease of this Client", a.Err(), holdfast.ErrLost)
		time.Sleep(11 * time.Second)
		redistest.Is(t, "the lease of another", b.Err(), holdfast.ErrLost)
		for _, n := range []int{-1, 2} {
			if _, err := mine.ForceRelease(t.Context(), n); !errors.Is(err, holdfast.ErrBadArgument) {
				t.Errorf("%d: %v", n, err)
			}
		}
	})
}

func TestWhatIsWrongWithTheArgumentsIsSaidByEachCall(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		for _, s := range []*slots.Slots{
			p.Slots("", 1), p.Slots(name, 0), p.Slots(name, slots.MaxNumbers+1), p.Slots(name, 3, slots.Prefer(3)),
			p.Slots(name, 3, slots.Quarantine(-1)), p.Slots(name, 3, slots.Quarantine(slots.MaxQuarantine+1)),
			p.Slots(name, 3, slots.Lease(holdfast.Renewed(1))),
		} {
			if slot, err := s.TryAcquire(t.Context()); !errors.Is(err, holdfast.ErrBadArgument) || slot.Number() != -1 {
				t.Errorf("number %d, %v", slot.Number(), err)
			}
		}
		world.Equal(t, p.Runs(""), 0, "%d requests")
	})
}
