package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// A unit test needs no Redis at all: the lock is granted, or it is not.
func TestReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inventory := Inventory{Ledger: NewLedger(map[string]int{"bolt": 10})}
		granted := holdfasttest.Granting(t)
		inventory.Locks = func(string) holdfast.Locker { return granted }
		if err := inventory.Reserve(t.Context(), "bolt", 8); err != nil || inventory.Ledger.Left("bolt") != 2 {
			t.Errorf("%v, %d left", err, inventory.Ledger.Left("bolt"))
		}
		if err := inventory.Reserve(t.Context(), "bolt", 8); !errors.Is(err, ErrSoldOut) {
			t.Error(err)
		}
		busy := holdfasttest.Busy(t)
		inventory.Locks = func(string) holdfast.Locker { return busy }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // which takes no time here
		defer cancel()
		if err := inventory.Reserve(ctx, "bolt", 1); !errors.Is(err, holdfast.ErrBusy) {
			t.Error(err)
		}
	})
}

// processes returns an inventory for each of two processes, with one ledger.
func processes(s *holdfasttest.Server, left int) (a, b Inventory) {
	ledger := NewLedger(map[string]int{"bolt": left})
	of := func(c *holdfast.Client) Inventory {
		return Inventory{Locks: func(thing string) holdfast.Locker { return c.Mutex("inventory:" + thing) }, Ledger: ledger}
	}
	return of(s.Client()), of(s.Client())
}

// A process stands still between its read and its write, and its lock passes to another. Its write is refused, also while
// the next holder has read but not written yet.
func TestReserve_LosesItsLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := holdfasttest.New(t)
		a, b := processes(s, 10)
		var late error
		a.between = func(l *holdfast.Lease) {
			s.Lose(l)
			b.between = func(*holdfast.Lease) { late = a.Ledger.Write("bolt", 5, l.Token()) }
			if err := b.Reserve(t.Context(), "bolt", 7); err != nil {
				t.Error(err)
			}
		}
		if err := a.Reserve(t.Context(), "bolt", 5); !errors.Is(err, fence.ErrStale) || !errors.Is(late, fence.ErrStale) {
			t.Errorf("a holder of the past wrote: %v, %v", late, err)
		}
		if left := a.Ledger.Left("bolt"); left != 3 {
			t.Errorf("%d left, want 3", left)
		}
		s.RequireNoLeases()
	})
}

// A failover forgets the grant: two hold the lock at once. The ledger takes the write of the later one alone.
func TestReserve_Failover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := holdfasttest.New(t)
		a, b := processes(s, 10)
		a.between = func(*holdfast.Lease) {
			s.Failover(1)
			time.Sleep(time.Millisecond) // the next token is greater, as the server's clock is
			if err := b.Reserve(t.Context(), "bolt", 7); err != nil {
				t.Error(err)
			}
		}
		if err := a.Reserve(t.Context(), "bolt", 5); !errors.Is(err, fence.ErrStale) {
			t.Errorf("a holder that a failover forgot wrote: %v", err)
		}
		if left := a.Ledger.Left("bolt"); left != 3 {
			t.Errorf("%d left, want 3", left)
		}
	})
}

// Redis is gone for a while: callers wait, and go on when it is back.
func TestReserve_Outage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := holdfasttest.New(t)
		a, _ := processes(s, 10)
		s.Down()
		time.AfterFunc(time.Minute, s.Up)
		begun := time.Now()
		if err := a.Reserve(t.Context(), "bolt", 5); err != nil || time.Since(begun) < time.Minute {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}

// Four processes, with pauses, losses and outages wherever they may be: no write of a holder of the past.
func TestReserve_CheckExclusive(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		s := holdfasttest.New(t)
		ledger := NewLedger(map[string]int{"bolt": 1000})
		s.CheckExclusive(holdfasttest.Section{
			Lock: func(c *holdfast.Client) holdfast.Locker { return c.Mutex("inventory:bolt") },
			Work: func(ctx context.Context, l *holdfast.Lease, p *holdfasttest.Probe) error {
				left, err := ledger.Read(ctx, "bolt", l.Token())
				if err != nil {
					return nil // a later holder has been here
				}
				p.Pause()
				if err := ledger.Write("bolt", left-1, l.Token()); err == nil {
					p.Wrote()
				}
				return nil
			},
		})
	})
}
