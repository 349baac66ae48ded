// Waiting behind others of the process, without a word to Redis.

package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// follower is a Follow on a goroutine of its own, and what it leads to.
type follower struct {
	caller
	passed any
}

// follow starts a Follow as the owner with that number.
func follow(e *Engine, x *server, owner int64) *follower {
	ctx, cancel := context.WithCancel(context.Background())
	f := &follower{caller: caller{cancel: cancel, done: make(chan struct{}), waited: true}}
	go func() {
		defer close(f.done)
		turn, err := e.Follow(ctx, "test", "k", alike)
		f.passed, f.err = turn.Passed, err
		if turn.Leads() {
			w, ticket := x.waiting(owner, alike)
			f.err = e.Lead(ctx, w, turn)
			f.passed = ticket.Passed
		}
		f.ended = time.Now()
	}()
	synctest.Wait()
	return f
}

// Who follows is passed the thing in its turn, and places are used again. When
// nobody follows any more, it is the head's turn.
func TestFollowersInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, e *Engine, _ *redistest.MiniServer) {
		x, heads, tickets := inLine(e, 1)
		before := x.tried()
		for round := range 3 {
			followers := []*follower{follow(e, x, 7), follow(e, x, 8)}
			for i, f := range followers {
				if !e.Pass("k", alike, 10*round+i) {
					t.Fatalf("round %d: pass %d failed", round, i)
				}
				if mustBeNext(t, &f.caller); f.passed != 10*round+i {
					t.Fatalf("round %d: %d was passed %v", round, i, f.passed)
				}
			}
		}
		if !e.Pass("k", alike, "last") {
			t.Fatal("the head is passed nothing")
		}
		if mustBeNext(t, heads[0]); tickets[0].Passed != "last" {
			t.Errorf("the head was passed %v", tickets[0].Passed)
		}
		if after := x.tried(); after != before {
			t.Errorf("Redis was asked %d times", after-before)
		}
		e.Abandon("k")
	})
}

// There is nobody to follow where nobody waits, nor where who leads waits on other terms.
func TestNobodyToFollow(t *testing.T) {
	inBubble(t, func(t *testing.T, e *Engine, _ *redistest.MiniServer) {
		if turn, err := e.Follow(t.Context(), "test", "k", alike); err != nil || turn != (Turn{}) {
			t.Errorf("followed nobody: %v, %v", turn, err)
		}
		_, heads, _ := inLine(e, 1)
		if turn, err := e.Follow(t.Context(), "test", "k", Terms{Lease: 1}); err != nil || turn != (Turn{}) {
			t.Errorf("followed one on other terms: %v, %v", turn, err)
		}
		heads[0].leave(t)
	})
}

// Who follows leads once the head has gone, with the process's seat, and asks.
func TestFollowerLeads(t *testing.T) {
	inBubble(t, func(t *testing.T, e *Engine, s *redistest.MiniServer) {
		x, heads, _ := inLine(e, 1)
		first, second := follow(e, x, 7), follow(e, x, 8)
		heads[0].leave(t)
		synctest.Wait()
		if last := x.asked[len(x.asked)-1]; last != 101 {
			t.Errorf("asked as %d, want 101, whose seat it is", last)
		}
		x.release(s)
		mustBeNext(t, &first.caller, &second.caller)
		second.leave(t)
	})
}

// Who is cancelled in the moment in which it is passed the thing has it. If it comes to
// lead in that moment, it leaves its line as a head does, with the seat.
func TestFollowerGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T, e *Engine, _ *redistest.MiniServer) {
		for range 100 {
			x, heads, _ := inLine(e, 1)
			f := follow(e, x, 7)
			f.cancel()
			passed := e.Pass("k", alike, "it")
			<-f.done
			if has := f.passed != nil; !passed || has != (f.err == nil) {
				t.Fatalf("passed on %v, has %v: %v", passed, f.passed, f.err)
			} else if !has { // but the head
				heads[0].cancel()
				if <-heads[0].done; heads[0].err != nil {
					t.Fatal("passed to nobody")
				}
				e.Abandon("k")
				continue
			}
			g := follow(e, x, 8)
			heads[0].cancel()
			g.cancel()
			<-heads[0].done
			if <-g.done; !errors.Is(g.err, errs.Busy) || !errors.Is(g.err, context.Canceled) {
				t.Fatalf("gave up as it came to lead: %v", g.err)
			}
			if owner := e.Abandon("k"); owner != 0 {
				t.Fatalf("the seat of %d is left", owner)
			}
		}
	})
}

// Nobody can give up any more who has been passed the thing, or leads.
func TestTooLateToGiveUp(t *testing.T) {
	var e Engine
	l := &e.lines
	head := l.join("k", &Ticket{Grain: PerProcess, Terms: alike})
	first, second := l.follow("k", alike), l.follow("k", alike)
	if !e.Pass("k", alike, "it") || l.giveUp(first) {
		t.Error("the first gave up what it was passed")
	}
	l.leave(head)
	if l.giveUp(second) {
		t.Error("the second left its line without a head")
	}
}

// When the Client closes everybody leaves, with the error that says so.
func TestFollowersOfAClosedClient(t *testing.T) {
	inBubble(t, func(t *testing.T, e *Engine, _ *redistest.MiniServer) {
		x, _, _ := inLine(e, 1)
		var followers []*follower
		for i := range 100 {
			followers = append(followers, follow(e, x, int64(i)))
		}
		e.Close()
		for _, f := range followers {
			<-f.done
			if !errors.Is(f.err, errs.Closed) {
				t.Fatalf("got %v", f.err)
			}
		}
	})
}
