// These tests are about the contexts of a lease: when they end, with what cause, and that they are
// freed.

package hold

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// thing is a Resource of which the tests ask only its kind, name and key.
type thing struct{ Resource }

func (thing) Kind() string { return "mutex" }
func (thing) Name() string { return "a" }
func (thing) Key() string  { return "a" }

// someLease returns a lease that is held locally, and a function that ends it.
func someLease(e *engine.Engine) (l *Lease, endIt func(how end)) {
	h := &hold{engine: e, resource: thing{}, counted: counted{count: 1}}
	l = &h.first
	l.hold, h.leases, h.deadline = h, l, time.Now().Add(time.Hour)
	return l, func(how end) {
		h.mu.Lock()
		h.finish(l, how)
		h.mu.Unlock()
		l.tell()
	}
}

func (l *Lease) contexts() int {
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	if l.rare == nil {
		return 0
	}
	return len(l.rare.children)
}

// A process that stood still asks before the scheduler runs again: the lease is over once its deadline has passed.
func TestErrDoesNotWaitForTheScheduler(t *testing.T) {
	e, err := engine.New(redistest.Mini(t).Client(), nil, slog.New(slog.DiscardHandler))
	redistest.Must(t, err)
	defer e.Close()
	l, _ := someLease(e)
	e.Register("a", l.hold)
	redistest.Check(t, l.Err())
	l.hold.deadline = time.Now().Add(-time.Millisecond)
	redistest.Is(t, "after its deadline", l.Err(), errs.Lost)
	select {
	case <-l.Done():
	default:
		t.Error("its Done is open")
	}
}

func TestContextEndsWithTheLease(t *testing.T) {
	for how, cause := range map[end]error{byLoss: errs.Lost, byRelease: errs.Released, byMaxHold: errs.MaxHold, byClose: errs.Closed} {
		l, end := someLease(new(engine.Engine))
		before := l.Context(t.Context())
		deeper, cancel := context.WithCancel(before)
		defer cancel()
		if before.Err() != nil || l.Err() != nil {
			t.Errorf("ended already: %v, %v", context.Cause(before), l.Err())
		}
		early := l.Done()
		end(how)
		after := l.Context(t.Context())
		for _, ctx := range []context.Context{before, deeper, after} {
			if !errors.Is(ctx.Err(), context.Canceled) || !errors.Is(context.Cause(ctx), cause) {
				t.Errorf("%v: ended with %v, cause %v", cause, ctx.Err(), context.Cause(ctx))
			}
		}
		<-early
		<-l.Done()
		if !errors.Is(l.Err(), cause) {
			t.Errorf("%v: Err says %v", cause, l.Err())
		}
		redistest.Equal(t, l.contexts(), 0, "%d contexts are kept")
	}
}

// A context of a lease has its parent's deadline and values, and ends with it and its cause.
func TestContextFollowsItsParent(t *testing.T) {
	type key struct{}
	deadline, cancel := context.WithDeadline(context.WithValue(t.Context(), key{}, "value"), time.Now().Add(time.Hour))
	defer cancel()
	parent, end := context.WithCancelCause(deadline)
	l, endIt := someLease(new(engine.Engine))
	defer endIt(byRelease)
	ctx := l.Context(parent)
	want, _ := parent.Deadline()
	if got, ok := ctx.Deadline(); !ok || got != want || ctx.Value(key{}) != "value" {
		t.Errorf("deadline %v, want %v; value %v", got, want, ctx.Value(key{}))
	}
	mine := errors.New("the parent's own")
	end(mine)
	<-ctx.Done()
	redistest.Is(t, "cause", context.Cause(ctx), mine)
}

// A loop makes a context in each round, from a parent that ends with the round. These contexts do
// not accumulate.
func TestContextIsFreedWithItsParent(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		l, end := someLease(new(engine.Engine))
		for range 1000 {
			parent, cancel := context.WithCancel(context.Background())
			ctx := l.Context(parent)
			cancel()
			<-ctx.Done()
			synctest.Wait()
			if n := l.contexts(); n != 0 {
				t.Fatalf("%d contexts are kept", n)
			}
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if ctx := l.Context(ended); ctx.Err() == nil {
			t.Error("the context of a parent that has ended lives")
		}
		synctest.Wait()
		redistest.Equal(t, l.contexts(), 0, "%d contexts are kept")
		end(byRelease)
	})
}

// A parent and the lease end at the same instant. They end the context once, and leave no
// goroutine.
func TestContextEndsOnce(t *testing.T) {
	for range 200 {
		redistest.Bubble(t, func(t *testing.T) {
			l, end := someLease(new(engine.Engine))
			parent, cancel := context.WithCancel(context.Background())
			ctx := l.Context(parent)
			go cancel()
			go end(byLoss)
			<-ctx.Done()
			synctest.Wait()
			redistest.Equal(t, l.contexts(), 0, "%d contexts are kept")
		})
	}
}

// A goroutine that has waited on Done finds that every context has ended. This is also true if no
// goroutine had asked for the Done channel before the end.
func TestContextsEndBeforeDoneIsClosed(t *testing.T) {
	for _, asked := range []bool{true, false} {
		l, endIt := someLease(new(engine.Engine))
		l.Context(t.Context())
		if asked {
			l.Done()
		}
		cancelled := false
		for c := range l.rare.children {
			cancel := c.cancel
			c.cancel = func(cause error) {
				select {
				case <-l.Done():
					t.Error("Done is closed before the context ends")
				default:
				}
				cancelled = true
				cancel(cause)
			}
		}
		endIt(byRelease)
		<-l.Done()
		if !cancelled {
			t.Error("the context has not ended")
		}
	}
}

// A loss that the process found out late is reported as such: no renewal has failed.
func TestALossIsSaidToBeThatOfAProcessThatStoodStill(t *testing.T) {
	e := new(engine.Engine)
	l, _ := someLease(e)
	h, deadline := l.hold, time.Now()
	h.deadline = deadline
	if _, gone := h.expire(deadline.Add(12 * time.Second)); !gone {
		t.Fatal("the lease goes on")
	}
	err := l.Err()
	if !errors.Is(err, errs.Lost) || !strings.Contains(err.Error(), "this process stood still, and found out 12s after its deadline") {
		t.Errorf("%v", err)
	}
}
