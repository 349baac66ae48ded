// Followers wait behind other waiters of their process, and Redis is not asked.

package line

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// follower is a Follow on a goroutine of its own, together with its outcome.
type follower struct {
	caller
	passed any
}

// follow starts a Follow for the owner with that number.
func follow(l *client, x *server, owner int64) *follower {
	ctx, cancel := context.WithCancel(context.Background())
	f := &follower{caller: caller{cancel: cancel, done: make(chan struct{}), waited: true}}
	go func() {
		defer close(f.done)
		turn, err := l.Follow(ctx, "test", "k", alike)
		f.passed, f.err = turn.Passed, err
		if turn.Leads() {
			w, ticket := x.waiting(owner, alike)
			f.err = l.Lead(ctx, w, turn)
			f.passed = ticket.Passed
		}
		f.ended = time.Now()
	}()
	synctest.Wait()
	return f
}

// Followers are passed the thing in order, and a place in the line can be used again. When no
// follower is left, the thing is passed to the head.
func TestFollowersInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, _ *redistest.MiniServer) {
		x, heads, tickets := inLine(l, 1)
		before := x.tried()
		for round := range 3 {
			followers := []*follower{follow(l, x, 7), follow(l, x, 8)}
			for i, f := range followers {
				if !l.Pass("k", alike, 10*round+i) {
					t.Fatalf("round %d: pass %d failed", round, i)
				}
				if mustBeNext(t, &f.caller); f.passed != 10*round+i {
					t.Fatalf("round %d: %d was passed %v", round, i, f.passed)
				}
			}
		}
		if !l.Pass("k", alike, "last") {
			t.Fatal("the head is passed nothing")
		}
		if mustBeNext(t, heads[0]); tickets[0].Passed != "last" {
			t.Errorf("the head was passed %v", tickets[0].Passed)
		}
		if after := x.tried(); after != before {
			t.Errorf("Redis was asked %d times", after-before)
		}
		l.Abandon("k")
	})
}

// Follow returns at once if nobody waits, or if the head waits on other terms.
func TestNobodyToFollow(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, _ *redistest.MiniServer) {
		if turn, err := l.Follow(t.Context(), "test", "k", alike); err != nil || turn != (Turn{}) {
			t.Errorf("followed nobody: %v, %v", turn, err)
		}
		_, heads, _ := inLine(l, 1)
		if turn, err := l.Follow(t.Context(), "test", "k", Terms{Lease: 1}); err != nil || turn != (Turn{}) {
			t.Errorf("followed one on other terms: %v, %v", turn, err)
		}
		heads[0].leave(t)
	})
}

// A follower becomes the head once the head has gone. It takes over the process's seat and asks.
func TestFollowerLeads(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, s *redistest.MiniServer) {
		x, heads, _ := inLine(l, 1)
		first, second := follow(l, x, 7), follow(l, x, 8)
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

// A follower that is cancelled in the moment in which it is passed the thing either has it or
// leaves it to the head. A follower that becomes the head in that moment leaves the line as a head
// does, and takes the seat with it.
func TestFollowerGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, _ *redistest.MiniServer) {
		for range 100 {
			x, heads, _ := inLine(l, 1)
			f := follow(l, x, 7)
			f.cancel()
			passed := l.Pass("k", alike, "it")
			<-f.done
			if has := f.passed != nil; !passed || has != (f.err == nil) {
				t.Fatalf("passed on %v, has %v: %v", passed, f.passed, f.err)
			} else if !has { // then the head has been passed it
				heads[0].cancel()
				if <-heads[0].done; heads[0].err != nil {
					t.Fatal("passed to nobody")
				}
				l.Abandon("k")
				continue
			}
			g := follow(l, x, 8)
			heads[0].cancel()
			g.cancel()
			<-heads[0].done
			if <-g.done; !errors.Is(g.err, errs.Busy) || !errors.Is(g.err, context.Canceled) {
				t.Fatalf("gave up as it came to lead: %v", g.err)
			}
			if owner := l.Abandon("k"); owner != 0 {
				t.Fatalf("the seat of %d is left", owner)
			}
		}
	})
}

// A follower that has been passed the thing, or has become the head, can no longer give up.
func TestTooLateToGiveUp(t *testing.T) {
	var l Lines
	head := l.join("k", &Ticket{Grain: PerProcess, Terms: alike})
	first, second := l.follow("k", alike), l.follow("k", alike)
	if !l.Pass("k", alike, "it") || l.giveUp(first) {
		t.Error("the first gave up what it was passed")
	}
	l.leave(head)
	if l.giveUp(second) {
		t.Error("the second left its line without a head")
	}
}

// When the Client closes, every follower leaves with errs.Closed.
func TestFollowersOfAClosedClient(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, _ *redistest.MiniServer) {
		x, _, _ := inLine(l, 1)
		var followers []*follower
		for i := range 100 {
			followers = append(followers, follow(l, x, int64(i)))
		}
		l.Close()
		for _, f := range followers {
			<-f.done
			if !errors.Is(f.err, errs.Closed) {
				t.Fatalf("got %v", f.err)
			}
		}
	})
}
