// Callers that join share one answer, and the lead goes on when its holder leaves.

package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// joiner is one caller of Join on a goroutine of its own.
type joiner struct {
	lead   *Join
	answer any
	err    error
	done   chan struct{}
}

func joining(ctx context.Context, e *Engine, sort string) *joiner {
	j := &joiner{done: make(chan struct{})}
	go func() {
		defer close(j.done)
		j.lead, j.answer, j.err = e.Join(ctx, "k", sort)
	}()
	synctest.Wait()
	return j
}

// state says how a joiner is: waits, leads, has an answer, or failed.
func (j *joiner) state() string {
	synctest.Wait()
	select {
	case <-j.done:
	default:
		return "waits"
	}
	switch {
	case j.err != nil:
		return "failed"
	case j.lead != nil:
		return "leads"
	default:
		return j.answer.(string)
	}
}

func joinEngine() *Engine {
	e := &Engine{}
	e.closing, e.end = context.WithCancelCause(context.Background())
	return e
}

func TestJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := joinEngine()
		want := func(what, state string, j *joiner) {
			t.Helper()
			if got := j.state(); got != state {
				t.Errorf("%s: %s, want %s", what, got, state)
			}
		}
		a := joining(t.Context(), e, "")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		b, c, d := joining(ctx, e, ""), joining(t.Context(), e, ""), joining(t.Context(), e, "")
		other := joining(t.Context(), e, "of another sort")
		want("the first", "leads", a)
		want("the second", "waits", b)
		want("of another sort", "leads", other)
		time.Sleep(time.Second)
		want("the second, cancelled", "failed", b)
		if !errors.Is(b.err, errs.Busy) || !errors.Is(b.err, context.DeadlineExceeded) {
			t.Error(b.err)
		}
		other.lead.Tell("other")
		want("the third", "waits", c)
		a.lead.Leave()
		want("the third, when the first has left", "leads", c)
		want("the fourth", "waits", d)
		c.lead.Tell("x")
		want("the fourth, told", "x", d)
		f := joining(t.Context(), e, "")
		want("later", "leads", f)
		f.lead.Leave()
		if len(e.joins.byKey) != 0 {
			t.Errorf("left: %v", e.joins.byKey)
		}
	})
}

// A turn that nobody is left to take ends the Join, and the next caller leads.
func TestJoin_TurnForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := joinEngine()
		for range 100 { // the one that waits may have left before the lead does
			a := joining(t.Context(), e, "")
			ctx, cancel := context.WithCancel(t.Context())
			b := joining(ctx, e, "")
			cancel()
			a.lead.Leave()
			if b.state() == "leads" {
				b.lead.Leave()
			}
			if len(e.joins.byKey) != 0 {
				t.Fatal("callers that have all left are still known")
			}
			c := joining(t.Context(), e, "")
			if c.state() != "leads" {
				t.Fatalf("the next %s", c.state())
			}
			c.lead.Leave()
		}
	})
}

func TestJoin_UnjoinAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := joinEngine()
		a, b := joining(t.Context(), e, ""), joining(t.Context(), e, "")
		e.Unjoin("k")
		c := joining(t.Context(), e, "")
		if c.state() != "leads" {
			t.Error("a caller after Unjoin shares the answer of those before it")
		}
		a.lead.Tell("x")
		if b.state() != "x" {
			t.Error(b.state())
		}
		d := joining(t.Context(), e, "")
		if d.state() != "waits" {
			t.Error("the end of the earlier callers has ended the later ones")
		}
		e.end(errs.Closed)
		if d.state() != "failed" || !errors.Is(d.err, errs.Closed) {
			t.Errorf("%s: %v", d.state(), d.err)
		}
		c.lead.Leave()
	})
}
