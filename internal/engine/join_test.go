// Callers that join share one answer, and the lead goes on when its holder leaves.

package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// joiner is one caller of Join on a goroutine of its own.
type joiner struct {
	lead   *Lead
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

func (j *joiner) want(t *testing.T, what, state string) {
	t.Helper()
	redistest.Equal(t, j.state(), state, "%s, want %s (%s)", state, what)
}

// together runs a scene of callers that join, and checks that nothing is left of them.
func together(t *testing.T, scene func(t *testing.T, e *Engine, join func() *joiner)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := &Engine{}
		e.closing, e.end = context.WithCancelCause(context.Background())
		scene(t, e, func() *joiner { return joining(t.Context(), e, "") })
		if len(e.joins.byKey) != 0 {
			t.Errorf("left: %v", e.joins.byKey)
		}
	})
}

func TestJoin(t *testing.T) {
	together(t, func(t *testing.T, e *Engine, join func() *joiner) {
		a := join()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		b, c, d := joining(ctx, e, ""), join(), join()
		other := joining(t.Context(), e, "of another sort")
		a.want(t, "the first", "leads")
		b.want(t, "the second", "waits")
		other.want(t, "of another sort", "leads")
		time.Sleep(time.Second)
		b.want(t, "the second, cancelled", "failed")
		if !errors.Is(b.err, errs.Unavailable) || !errors.Is(b.err, context.DeadlineExceeded) || errors.Is(b.err, errs.Busy) {
			t.Error(b.err)
		}
		a.lead.Says(errs.Busy)
		ended, end := context.WithCancel(t.Context())
		end()
		if g := joining(ended, e, ""); !errors.Is(g.err, errs.Busy) || !errors.Is(g.err, context.Canceled) {
			t.Error(g.err)
		}
		other.lead.Tell("other")
		c.want(t, "the third", "waits")
		a.lead.Leave()
		c.want(t, "the third, when the first has left", "leads")
		d.want(t, "the fourth", "waits")
		c.lead.Tell("x")
		d.want(t, "the fourth, told", "x")
		f := join()
		f.want(t, "later", "leads")
		f.lead.Leave()
	})
}

// A turn that nobody is left to take ends the Join, and the next caller leads.
func TestJoin_TurnForNobody(t *testing.T) {
	for range 100 { // the one that waits may have left before the lead does
		together(t, func(t *testing.T, e *Engine, join func() *joiner) {
			a := join()
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
			c := join()
			c.want(t, "the next", "leads")
			c.lead.Leave()
		})
	}
}

// After Unjoin callers share nothing with those before it. Close ends all waits.
func TestJoin_UnjoinAndClose(t *testing.T) {
	together(t, func(t *testing.T, e *Engine, join func() *joiner) {
		a, b := join(), join()
		e.Unjoin("k")
		c := join()
		c.want(t, "a caller after Unjoin", "leads")
		a.lead.Tell("x")
		b.want(t, "one before it", "x")
		d := join()
		d.want(t, "one after the end of the earlier ones", "waits")
		e.end(errs.Closed)
		d.want(t, "closed", "failed")
		if !errors.Is(d.err, errs.Closed) {
			t.Error(d.err)
		}
		c.lead.Leave()
	})
}

// A turn that was ended in the place of its caller is another's, or nobody's. What that caller does
// later changes nothing.
func TestJoin_ATurnThatWasTakenAway(t *testing.T) {
	together(t, func(t *testing.T, _ *Engine, join func() *joiner) {
		a, b, c := join(), join(), join()
		a.lead.Leave() // in its place: it is stuck
		leads, waits := b, c
		if c.state() == "leads" {
			leads, waits = c, b
		}
		leads.want(t, "one that has waited", "leads")
		d := join()
		a.lead.Leave()
		a.lead.Tell("of the past")
		waits.want(t, "the other, after what the stuck one did", "waits")
		d.want(t, "one that came later", "waits")
		leads.lead.Tell("x")
		waits.want(t, "the other", "x")
		d.want(t, "one that came later", "x")

		e := join()
		e.lead.Leave() // and nobody waits
		f, g := join(), join()
		f.want(t, "the first after that", "leads")
		e.lead.Leave()
		e.lead.Tell("of the past")
		g.want(t, "the second after that", "waits")
		f.lead.Tell("y")
		g.want(t, "the second after that", "y")
	})
}
