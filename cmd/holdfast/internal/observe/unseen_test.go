// Of a lock that is busy with short holds each release is reported, and none that was not.

package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// These catch a look by a message that puts off the next regular one, as then no hold is found at all; a release by
// message that is reported of nobody, or twice; and more looks than ten a second.
func TestEachReleaseOfABusyLockIsReported(t *testing.T) {
	mutex := func(c *holdfast.Client) holdfast.Locker { return c.Mutex("x") }
	for what, tc := range map[string]struct {
		hold, gap time.Duration
		of        func(*holdfast.Client) holdfast.Locker
		holders   int // that want it at the same time
		found     int // at least so many holds are found by a look
		exactly   bool
	}{
		"20 a second":        {hold: 45 * time.Millisecond, gap: 5 * time.Millisecond, of: mutex, holders: 1, found: 2},
		"two a second":       {hold: 470 * time.Millisecond, gap: 50 * time.Millisecond, of: mutex, holders: 1, found: 4},
		"one in 800 ms":      {hold: 700 * time.Millisecond, gap: 100 * time.Millisecond, of: mutex, holders: 1, found: 10},
		"handed over":        {hold: 45 * time.Millisecond, gap: 5 * time.Millisecond, of: mutex, holders: 2, found: 2},
		"long holds":         {hold: 4 * time.Second, gap: 3 * time.Second, of: mutex, holders: 1, found: 20, exactly: true},
		"long, handed over":  {hold: 4 * time.Second, of: mutex, holders: 2, found: 40, exactly: true},
		"a writer's":         {hold: 300 * time.Millisecond, gap: 50 * time.Millisecond, of: func(c *holdfast.Client) holdfast.Locker { return c.RWMutex("x") }, holders: 1, found: 2},
		"a reader's":         {hold: 300 * time.Millisecond, gap: 50 * time.Millisecond, of: func(c *holdfast.Client) holdfast.Locker { return c.RWMutex("x").RLocker() }, holders: 1, found: 2},
		"an only permit":     {hold: 40 * time.Millisecond, gap: 700 * time.Millisecond, of: permits, holders: 1},
		"a long-held permit": {hold: 4 * time.Second, gap: 3 * time.Second, of: permits, holders: 1, found: 20, exactly: true},
	} {
		t.Run(what, func(t *testing.T) {
			redistest.Bubble(t, func(t *testing.T) {
				const each = 20
				server := redistest.Mini(t)
				looks := holdfast.New(server.Client())
				defer looks.Close()
				if what == "an only permit" || what == "a long-held permit" {
					if err := looks.PermitSemaphore("x").SetPermits(t.Context(), 1); err != nil {
						t.Fatal(err)
					}
				}
				o := New(looks, server.Client(func(o *redis.Options) { o.ContextTimeoutEnabled = true }), "", Options{Pattern: "x"})
				f := follow(t, o)
				f.begins()
				time.Sleep(time.Second)
				begun := time.Now()
				done := make(chan struct{})
				for range tc.holders {
					go func() {
						defer func() { done <- struct{}{} }()
						c := holdfast.New(server.Client())
						defer c.Close()
						for range each {
							l := lockBy(t, tc.of(c))
							time.Sleep(tc.hold)
							if err := l.Release(context.Background()); err != nil {
								t.Error(err)
							}
							time.Sleep(tc.gap)
						}
					}()
				}
				for range tc.holders {
					<-done
				}
				took := time.Since(begun)
				time.Sleep(3 * time.Second)
				_ = f.stop()
				ended, found, unseen := tally(f.all)
				if ended+unseen != each*tc.holders {
					t.Errorf("%d ends that were found and %d that were not, of %d: %q", ended, unseen, each*tc.holders, f.all)
				}
				if found < tc.found || tc.exactly && unseen > 0 {
					t.Errorf("%d holds found, %d not", found, unseen)
				}
				if most := int((took + 4*time.Second) / shortest); f.n > most {
					t.Errorf("%d looks in %v", f.n, took)
				}
			})
		})
	}
}

func permits(c *holdfast.Client) holdfast.Locker { return c.PermitSemaphore("x").Locker(1) }

// lockBy locks, in a bubble.
func lockBy(t *testing.T, l holdfast.Locker) *holdfast.Lease {
	t.Helper()
	held, err := l.Lock(context.Background())
	if err != nil {
		t.Error(err)
	}
	return held
}

// tally counts, among events as words, ends, grants, and releases of holds that were not seen.
func tally(all []string) (ended, granted, unseen int) {
	for _, e := range all {
		what := strings.Fields(e)[1]
		switch What(what) {
		case Released, Expired:
			ended++
		case Passed:
			ended, granted = ended+1, granted+1
		case Granted:
			granted++
		case Unseen:
			var n int
			_, _ = fmt.Sscanf(e, "x unseen %d", &n)
			unseen += n
		}
	}
	return ended, granted, unseen
}

// A message may come before or after the look that finds its release. This catches a release that is reported twice
// then, and one that is forgotten for good.
func TestAReleaseIsSetAgainstItsMessage(t *testing.T) {
	free := state{kind: holdfast.KindFree}
	held := func(by string) state { return state{kind: holdfast.KindMutex, holds: by, left: time.Minute} }
	type step struct {
		heard int
		to    state
		want  int // unseen
	}
	for what, tc := range map[string][]step{
		"in time":                 {{0, held("a"), 0}, {1, free, 0}},
		"late":                    {{0, held("a"), 0}, {0, free, 0}, {1, free, 0}},
		"late, and one more":      {{0, held("a"), 0}, {0, free, 0}, {2, free, 1}},
		"lost":                    {{0, held("a"), 0}, {0, free, 0}, {0, free, 0}, {1, free, 1}},
		"between free and free":   {{3, free, 3}},
		"before a grant":          {{2, held("a"), 2}, {1, held("b"), 0}, {2, held("c"), 1}},
		"held all the while":      {{0, held("a"), 0}, {1, held("a"), 0}},
		"of a lock that ran out":  {{0, state{kind: holdfast.KindMutex, holds: "a", left: time.Nanosecond}, 0}, {1, held("b"), 0}},
		"of the last of readers":  {{0, state{kind: holdfast.KindRWLock, holds: "ab", left: time.Minute}, 0}, {1, free, 0}, {1, free, 1}},
		"of a writer, and others": {{0, state{kind: holdfast.KindRWLock, holds: "a!", left: time.Minute}, 0}, {3, free, 2}},
	} {
		var l ledger
		before := free
		for n, s := range tc {
			f := ofLocks
			if before.kind == holdfast.KindRWLock || strings.Contains(what, "readers") || strings.Contains(what, "writer") {
				f = ofRW
			}
			l.heard[f] += s.heard
			b, a := before.inspection(t), s.to.inspection(t)
			events := between(Compare(b, a), l.unseen(b, a, Compare(b, a)))
			got := 0
			if at := slices.IndexFunc(events, func(e Event) bool { return e.What == Unseen }); at >= 0 {
				got = events[at].Times
			}
			if got != s.want {
				t.Errorf("%s, step %d: %d unseen, want %d", what, n, got, s.want)
			}
			before = s.to
		}
	}
}
