// While a lock is busy all the time, its turns are shared between the two languages.

package interop

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// turns has the number of turns of each language while both contended.
type turns struct{ ofGo, ofJava int64 }

// java returns the turns of Java out of a hundred.
func (n turns) java() int64 { return 100 * n.ofJava / max(n.ofGo+n.ofJava, 1) }

// share makes goroutines of one Client, and threads of each of two Redisson clients, contend for a
// Mutex. It counts their turns once both languages have begun.
func (w *world) share(g *guard, goroutines, threads int, counted time.Duration) turns {
	w.t.Helper()
	const warmUp = 2 * time.Second
	c := contest{turns: 1 << 30, limit: counted + 2*warmUp, stay: 300 * time.Microsecond, threads: goroutines}
	side, client := mutexPair.sides[0], w.holdfast()
	redissons := []*Redisson{w.redisson("contender"), w.redisson("contender")}
	ctx, cancel := context.WithTimeout(w.ctx, c.limit+patience)
	defer cancel()
	var work errgroup.Group
	var worstGo, worstJava atomic.Int64
	work.Go(func() error { return contendInGo(ctx, side, client, g, "shared", c, &worstGo) })
	c.threads = threads
	for _, redisson := range redissons {
		work.Go(func() error { return contendInJava(ctx, side, redisson, g, "shared", c, &worstJava) })
	}
	time.Sleep(warmUp)
	goBefore, _, _ := g.of(guardGo)
	javaBefore, _, _ := g.of(guardJava)
	time.Sleep(counted)
	goAfter, _, _ := g.of(guardGo)
	javaAfter, _, _ := g.of(guardJava)
	if err := work.Wait(); err != nil {
		w.t.Fatal(err)
	}
	n := turns{goAfter - goBefore, javaAfter - javaBefore}
	w.t.Logf("%d goroutines had %d turns in %v, longest wait %v; %d threads had %d, longest wait %v: %d of 100 turns", goroutines,
		n.ofGo, counted, time.Duration(worstGo.Load()), clients*threads, n.ofJava, time.Duration(worstJava.Load()), n.java())
	return n
}

// leastOfGo is the least number of turns of Go out of a hundred.
const leastOfGo = 20

// Java has about half of the turns, even when no goroutine of Go queues. The bounds leave room for
// a busy machine: there the waiters of one language may come too late for their moment, and then
// the other language goes on among itself.
func TestJavaHasItsShareOfABusyMutex(t *testing.T) {
	redistest.LongRun(t)
	for _, tc := range []struct {
		what                string
		goroutines, threads int
		least               int64 // out of a hundred turns
	}{
		{"as many of each", 50, 25, 25},
		{"one goroutine", 1, 25, 25},
		{"few threads", 8, 1, 10},
	} {
		t.Run(tc.what, func(t *testing.T) {
			everywhere(t, Newest, func(t *testing.T, w *world) {
				g := newGuard(t)
				n := w.share(g, tc.goroutines, tc.threads, time.Duration(redistest.Count(t, int(30*time.Second))))
				w.noOverlaps(mutexPair, g)
				if java := n.java(); java < tc.least || 100-java < leastOfGo {
					t.Errorf("Java had %d of 100 turns, want %d at least, and %d for Go", java, tc.least, leastOfGo)
				}
			})
		})
	}
}
