// Waiters that stand behind others of their process ask Redis for nothing.

package line

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// follow starts a wait of the owner with that number.
func follow(l *client, x *server, owner int64) *caller {
	f := wait(l, x.waiting(owner, alike))
	synctest.Wait()
	return f
}

// Followers are passed the thing in order, and a place in the line can be used again. When no
// follower is left, the thing is passed to the head.
func TestFollowersInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, _ *redistest.MiniServer) {
		x, heads := inLine(l, 1)
		before := x.tried()
		for round := range 3 {
			followers := []*caller{follow(l, x, 7), follow(l, x, 8)}
			for i, f := range followers {
				if !l.Pass("k", alike, 10*round+i) {
					t.Fatalf("round %d: pass %d failed", round, i)
				}
				if mustBeNext(t, f); f.out.Passed != 10*round+i {
					t.Fatalf("round %d: %d was passed %v", round, i, f.out.Passed)
				}
			}
		}
		if !l.Pass("k", alike, "last") {
			t.Fatal("the head is passed nothing")
		}
		if mustBeNext(t, heads[0]); heads[0].out.Passed != "last" {
			t.Errorf("the head was passed %v", heads[0].out.Passed)
		}
		if after := x.tried(); after != before {
			t.Errorf("Redis was asked %d times", after-before)
		}
		l.Abandon("k")
	})
}

// A follower becomes the head once the head has gone. It takes over the process's seat and asks.
func TestFollowerLeads(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, s *redistest.MiniServer) {
		x, heads := inLine(l, 1)
		first, second := follow(l, x, 7), follow(l, x, 8)
		heads[0].leave(t)
		synctest.Wait()
		if last := x.asked[len(x.asked)-1]; last != 101 {
			t.Errorf("asked as %d, want 101, whose seat it is", last)
		}
		x.release(s)
		mustBeNext(t, first, second)
		second.leave(t)
	})
}

// A follower that is cancelled in the moment in which it is passed the thing either has it or
// leaves it to the head. A follower that becomes the head in that moment leaves the line as a head
// does, and takes the seat with it.
func TestFollowerGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, _ *redistest.MiniServer) {
		for range 100 {
			x, heads := inLine(l, 1)
			f := follow(l, x, 7)
			f.cancel()
			passed := l.Pass("k", alike, "it")
			<-f.done
			if has := f.out.Passed != nil; !passed || has != (f.err == nil) {
				t.Fatalf("passed on %v, has %v: %v", passed, f.out.Passed, f.err)
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

// When the Client closes, every follower leaves with errs.Closed.
func TestFollowersOfAClosedClient(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, _ *redistest.MiniServer) {
		x, _ := inLine(l, 1)
		var followers []*caller
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
