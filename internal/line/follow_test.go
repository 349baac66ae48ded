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
