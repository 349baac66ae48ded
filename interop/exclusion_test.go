// Goroutines and Java threads that take turns are never in together, on one server and on a cluster, and get their
// turns.

package interop

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// These are the clients of each language. Each client is like a process, with that many threads.
const (
	clients = 2
	threads = 3
)

func TestGoAndJavaExcludeEachOther(t *testing.T) {
	for _, p := range pairs {
		t.Run(p.name, func(t *testing.T) {
			onServers(t, p.since, long() || p.clustered, func(t *testing.T, w *world) { w.exclude(p) })
		})
	}
}

// exclude makes the two languages take 10 000 turns in all, half of them each.
func (w *world) exclude(p pair) {
	w.t.Helper()
	c := contest{turns: redistest.Count(w.t, 10_000) / 2, limit: 25 * patience, rest: 2 * time.Millisecond, mixed: true}
	// Sometimes one language hears too little of the other, or comes after it. Then the lock must
	// be free at times. Otherwise that language would have its turns only after all turns of the
	// other.
	switch {
	case p.lease != 0 && long():
		c.rest = 300 * time.Millisecond
	case p.deaf && long():
		c.rest = 100 * time.Millisecond
	case p.deaf: // each meeting costs one of the waiters a second
		c.turns, c.rest = c.turns/10, 500*time.Millisecond
	case p.unshared:
		c.rest = 30 * time.Millisecond
	}
	g := newGuard(w.t)
	w.contend(p, g, "contended-"+p.sides[0].java, c)
	w.noOverlaps(p, g)
	for language, word := range map[string]int{"Go": guardGo, "Java": guardJava} {
		grants, _, crossings := g.of(word)
		if int(grants) != c.turns {
			w.t.Errorf("%d grants to %s, want %d", grants, language, c.turns)
		}
		// Two languages that never meet do not overlap either, and would show nothing.
		if least := max(2, c.turns/100); int(crossings) < least {
			w.t.Errorf("%d of %d grants to %s came after one to the other language, want %d", crossings, grants, language, least)
		}
	}
}

// noOverlaps checks the guard after all have left, and notes its figures.
func (w *world) noOverlaps(p pair, g *guard) {
	w.t.Helper()
	if inside := g.add(guardInside, 0); inside != 0 {
		w.t.Errorf("a weight of %d is in after all have gone", inside)
	}
	for direction, language := range map[string]int{javaToGo: guardGo, goToJava: guardJava} {
		grants, overlaps, crossings := g.of(language)
		if overlaps != 0 {
			w.t.Errorf("%s: %d overlaps in %d grants", direction, overlaps, grants)
		}
		measured.of(row{p.name, w.version, w.topology, direction}, func(v *values) {
			v.acquisitions, v.overlaps, v.crossings = max(v.acquisitions, 0)+grants, v.overlaps+overlaps, v.crossings+crossings
		})
	}
}

// contest says how two languages contend. Each language has that many turns, or as many as it gets
// before the limit. There is a rest before each turn.
type contest struct {
	turns int
	limit time.Duration
	rest  time.Duration // at most
	stay  time.Duration // how long each turn lasts; usualStay if it is 0

	threads int // threads of each client

	mixed bool // the languages must alternate often, so Go passes little on to itself
}

// usualStay is how long a turn lasts.
const usualStay = 50 * time.Microsecond

// lasts returns how long each turn lasts.
func (c *contest) lasts() time.Duration { return cmp.Or(c.stay, usualStay) }

// contend makes goroutines and Java threads contend for what the pair names. It returns the longest
// wait of each language.
func (w *world) contend(p pair, g *guard, name string, c contest) (worstGo, worstJava time.Duration) {
	w.t.Helper()
	var options []holdfast.Option
	if c.mixed {
		options = append(options, holdfast.WithDefaults(holdfast.Cohort(2, time.Millisecond)))
	}
	if p.lease != 0 {
		options = append(options, holdfast.WithDefaults(holdfast.Renewed(p.lease)))
	}
	c.threads = threads
	var processes [clients]struct {
		client   *holdfast.Client
		redisson *Redisson
	}
	for i := range processes {
		processes[i].client = w.holdfast(options...)
		processes[i].redisson = w.redisson(fmt.Sprintf("contender%d", i))
	}
	if p.setUp != nil {
		p.setUp(w, processes[0].client, name)
	}
	ctx, cancel := context.WithTimeout(w.ctx, c.limit+patience)
	defer cancel()
	var work errgroup.Group
	var waits [2]atomic.Int64
	share := shares(c.turns, clients*len(p.sides))
	for i, process := range processes {
		for j, s := range p.sides {
			part := c
			part.turns = share[i*len(p.sides)+j]
			work.Go(func() error {
				return contendInGo(ctx, s, process.client, g, name, part, &waits[0])
			})
			work.Go(func() error {
				return contendInJava(ctx, s, process.redisson, g, name, part, &waits[1])
			})
		}
	}
	redistest.Must(w.t, work.Wait())
	return time.Duration(waits[0].Load()), time.Duration(waits[1].Load())
}

// shares cuts n into parts that differ by at most one.
func shares(n, parts int) []int {
	all := make([]int, parts)
	for i := range all {
		all[i] = (n + i) / parts
	}
	return all
}

func contendInGo(ctx context.Context, s side, client *holdfast.Client, g *guard, name string, c contest, worst *atomic.Int64) error {
	var work errgroup.Group
	var left atomic.Int64
	left.Store(int64(c.turns))
	until := time.Now().Add(c.limit)
	for range c.threads {
		work.Go(func() error {
			take := s.take(client, name)
			for left.Add(-1) >= 0 && time.Now().Before(until) {
				time.Sleep(rand.N(c.rest + 1))
				asked := time.Now()
				giveBack, err := take(ctx)
				if err != nil {
					return err
				}
				raise(worst, int64(time.Since(asked)))
				g.enter(s.weight, s.room)
				time.Sleep(c.lasts())
				g.leave(s.weight)
				if err := giveBack(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return work.Wait()
}

func contendInJava(ctx context.Context, s side, redisson *Redisson, g *guard, name string, c contest, worst *atomic.Int64) error {
	value, err := redisson.Thread("contend-"+s.java).Do(ctx, "contend", s.java, name, g.path, s.weight, s.room,
		c.threads, c.turns, c.limit.Milliseconds(), c.rest.Microseconds(), c.lasts().Microseconds())
	if err != nil {
		return err
	}
	var grants, micros int64
	if _, err := fmt.Sscan(value, &grants, &micros); err != nil {
		return fmt.Errorf("contend: %q: %w", value, err)
	}
	raise(worst, micros*int64(time.Microsecond))
	return nil
}

// raise sets v to n if n is more.
func raise(v *atomic.Int64, n int64) {
	for old := v.Load(); n > old; old = v.Load() {
		if v.CompareAndSwap(old, n) {
			return
		}
	}
}

// contentionLasts is how long both languages contend. waitsAtMost is the longest that any waiter
// may wait for one turn of some hundreds of microseconds.
const (
	contentionLasts = 15 * time.Second
	waitsAtMost     = 5 * time.Second
)

func TestNeitherLanguageStarves(t *testing.T) {
	redistest.LongRun(t)
	for _, p := range pairs {
		if p.deaf || p.unshared {
			continue // only a waiter that hears of a release, and may act on it, can come in time
		}
		t.Run(p.name, func(t *testing.T) {
			everywhere(t, p.since, func(t *testing.T, w *world) {
				g := newGuard(t)
				limit := time.Duration(redistest.Count(t, int(contentionLasts)))
				worstGo, worstJava := w.contend(p, g, "starved", contest{turns: 1 << 30, limit: limit, rest: p.rest})
				w.noOverlaps(p, g)
				grants, _, crossings := g.of(guardGo)
				javaGrants, _, _ := g.of(guardJava)
				t.Logf("in %v: Go %d turns, longest wait %v; Java %d turns, longest wait %v; %d times from Java to Go",
					limit, grants, worstGo, javaGrants, worstJava, crossings)
				least := (grants + javaGrants) / 20
				if grants < least || javaGrants < least {
					t.Errorf("Go had %d turns, Java %d: one has less than a twentieth", grants, javaGrants)
				}
				if worst := max(worstGo, worstJava); worst > waitsAtMost {
					t.Errorf("somebody waited %v for a turn", worst)
				}
			})
		})
	}
}

// share makes goroutines of one Client, and threads of each of two Redisson clients, contend for a
// Mutex. It counts their turns once both languages have begun, and returns those of Java out of a hundred.
func (w *world) share(g *guard, goroutines, threads int, counted time.Duration) (java int64) {
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
	redistest.Must(w.t, work.Wait())
	ofGo, ofJava := goAfter-goBefore, javaAfter-javaBefore
	java = 100 * ofJava / max(ofGo+ofJava, 1)
	w.t.Logf("%d goroutines had %d turns in %v, longest wait %v; %d threads had %d, longest wait %v: %d of 100 turns", goroutines,
		ofGo, counted, time.Duration(worstGo.Load()), clients*threads, ofJava, time.Duration(worstJava.Load()), java)
	return java
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
				java := w.share(g, tc.goroutines, tc.threads, time.Duration(redistest.Count(t, int(30*time.Second))))
				w.noOverlaps(mutexPair, g)
				if java < tc.least || 100-java < leastOfGo {
					t.Errorf("Java had %d of 100 turns, want %d at least, and %d for Go", java, tc.least, leastOfGo)
				}
			})
		})
	}
}

// guard is a list of words of eight bytes, which processes change by atomic additions. Guard.java
// is the Java side of it.
type guard struct {
	path  string
	words *[8]int64
}

const (
	guardInside = iota // the weight of all that are in
	guardLast          // which language was let in last
	guardGo            // then two more: grants to Go, its overlaps, how often Java was before it
	_
	_
	guardJava // the same for Java
)

const languageGo = 1

func newGuard(t *testing.T) *guard {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guard")
	file, err := os.Create(path)
	redistest.Must(t, err)
	defer file.Close()
	const size = 8 * 8
	redistest.Must(t, file.Truncate(size))
	memory, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	redistest.Must(t, err)
	t.Cleanup(func() {
		redistest.Check(t, syscall.Munmap(memory))
	})
	return &guard{path: path, words: (*[8]int64)(unsafe.Pointer(&memory[0]))}
}

// enter notes that a holder of that weight is in. The holders beside it may weigh up to room.
func (g *guard) enter(weight, room int64) {
	if g.add(guardInside, weight)-weight > room {
		g.add(guardGo+1, 1)
	}
	g.add(guardGo, 1)
	if atomic.SwapInt64(&g.words[guardLast], languageGo) != languageGo {
		g.add(guardGo+2, 1)
	}
}

// leave notes that a holder of that weight leaves.
func (g *guard) leave(weight int64) { g.add(guardInside, -weight) }

func (g *guard) add(word int, n int64) int64 { return atomic.AddInt64(&g.words[word], n) }

// of returns the figures of one language, which guardGo or guardJava selects.
func (g *guard) of(language int) (grants, overlaps, crossings int64) {
	read := func(word int) int64 { return atomic.LoadInt64(&g.words[word]) }
	return read(language), read(language + 1), read(language + 2)
}
