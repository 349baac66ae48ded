// Goroutines and Java threads that take turns are never in together.

package interop

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

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
			everywhere(t, p.since, func(t *testing.T, w *world) { w.exclude(p) })
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
	if err := work.Wait(); err != nil {
		w.t.Fatal(err)
	}
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
