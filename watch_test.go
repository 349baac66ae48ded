// Watch reports each grant, release, loss and hand-over.

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// watch is one Watch under way.
type watch struct {
	stop  func()
	mu    sync.Mutex
	words []string // the events but the looks, as the name, the Happening, and how often
	looks int
	last  holdfast.Event // the last look
}

// watched has a goroutine watch names until it is stopped. It returns between two looks: what a test then does within no
// time, no look finds half done.
func watched(t *testing.T, c *holdfast.Client, pattern string, options ...holdfast.WatchOption) *watch {
	t.Helper()
	w := &watch{}
	w.stop = background(t, func(ctx context.Context) {
		for e := range c.Watch(ctx, pattern, options...) {
			w.take(e)
		}
	})
	time.Sleep(500 * time.Millisecond)
	return w
}

func (w *watch) take(e holdfast.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.What == holdfast.EventLooked {
		w.looks++
		w.last = e
		return
	}
	w.words = append(w.words, fmt.Sprintf("%s %s %d", e.Name, e.What, e.Times))
}

// lastLook returns the last look so far.
func (w *watch) lastLook() holdfast.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// says fails the test unless these are the words since the last time, once enough time has passed for a look.
func (w *watch) says(t *testing.T, want ...string) {
	t.Helper()
	time.Sleep(2 * time.Second)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.words, want) {
		t.Errorf("%q, want %q", w.words, want)
	}
	w.words = nil
}

// This catches a first look that reports what was there before, and a grant, a hand-over or a death that is reported as
// something else.
func TestWatch_GrantedPassedReleasedExpired(t *testing.T) {
	for _, pattern := range []string{"x", "x*"} {
		onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
			a, b := known(t, mini, "pod-1"), known(t, mini, "pod-2")
			l := clienttest.Grab(t, a.Mutex("x"))
			w := watched(t, c, pattern)
			defer w.stop()
			w.says(t)
			if e := w.lastLook(); len(e.Now) != 1 || e.Now[0].Holders[0].Who != "pod-1" {
				t.Errorf("%v", e)
			}
			var second *holdfast.Lease
			stop := background(t, func(ctx context.Context) { second, _ = b.Mutex("x").Lock(ctx) })
			w.says(t, "x waits 0")
			must(t, l.Release(t.Context()))
			time.Sleep(time.Second)
			stop()
			w.says(t, "x passed 0")
			must(t, second.Release(t.Context()))
			w.says(t, "x released 0")
			clienttest.Grab(t, b.Mutex("x"))
			w.says(t, "x granted 0")
			must(t, b.Close()) // nobody renews it
			time.Sleep(31 * time.Second)
			w.says(t, "x expired 0")
		})
	}
}

// Whether Redis has dropped a key is in what its servers say, and a release is announced. This catches an eviction that is
// reported as a release, and a release that is reported as a loss.
func TestWatch_Lost(t *testing.T) {
	for what, tc := range map[string]struct {
		pattern    string
		info, then []string
		released   bool
		want       string
	}{
		"evicted, of one":           {"x", []string{"run_id:a", "evicted_keys:7"}, []string{"run_id:a", "evicted_keys:8"}, false, "x lost 0"},
		"evicted, of many":          {"*", []string{"run_id:a", "evicted_keys:7"}, []string{"run_id:a", "evicted_keys:8"}, false, "x lost 0"},
		"begun anew":                {"*", []string{"run_id:a", "evicted_keys:0"}, []string{"run_id:b", "evicted_keys:0"}, false, "x lost 0"},
		"deleted":                   {"*", []string{"run_id:a", "evicted_keys:7"}, []string{"run_id:a", "evicted_keys:7"}, false, "x released 0"},
		"released, while it evicts": {"x", []string{"run_id:a", "evicted_keys:7"}, []string{"run_id:a", "evicted_keys:8"}, true, "x released 0"},
		"released, of many":         {"*", []string{"run_id:a", "evicted_keys:7"}, []string{"run_id:a", "evicted_keys:7"}, true, "x released 0"},
	} {
		t.Run(what, func(t *testing.T) {
			onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
				mini.SetInfo(tc.info...)
				l := clienttest.Grab(t, known(t, mini, "pod-1").Mutex("x"))
				w := watched(t, c, tc.pattern)
				defer w.stop()
				w.says(t)
				mini.SetInfo(tc.then...)
				if tc.released {
					must(t, l.Release(t.Context()))
				} else {
					mini.Del("x")
				}
				w.says(t, tc.want)
			})
		})
	}
}

// This catches a loop that takes long and for which events pile up, and releases meanwhile of which nothing is reported.
func TestWatch_ASlowLoop(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		works := known(t, mini, "pod-1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		released, looks := 0, 0
		for e := range c.Watch(ctx, "x") {
			switch e.What {
			case holdfast.EventUnseen:
				released += e.Times
			case holdfast.EventLooked:
				if looks++; looks < 4 {
					for range 50 {
						must(t, holdfast.Do(ctx, works.Mutex("x"), func(context.Context) error { return nil }))
					}
					time.Sleep(time.Minute)
				} else {
					cancel()
				}
			}
		}
		if released != 150 || looks != 4 {
			t.Errorf("%d releases in %d looks", released, looks)
		}
	})
}

// This catches a first look that ends before Redis has confirmed the subscription: of a release that comes then, nothing
// would be reported.
func TestWatch_HearsFromItsFirstLookOn(t *testing.T) {
	unreachable(t, func(t *testing.T, c *holdfast.Client, mini *redistest.MiniServer, proxy *redistest.FaultProxy) {
		proxy.OnCommand(func(c redistest.Command) redistest.Fault {
			if c.Name == "PSUBSCRIBE" {
				return redistest.Delay(100 * time.Millisecond)
			}
			return redistest.Pass
		})
		works := known(t, mini, "pod-1")
		looks := 0
		for e := range c.Watch(t.Context(), "x") {
			if e.What == holdfast.EventUnseen {
				return
			}
			if looks++; looks == 2 {
				break
			}
			must(t, holdfast.Do(t.Context(), works.Mutex("x"), func(context.Context) error { return nil }))
			time.Sleep(time.Second)
		}
		t.Error("the release was not reported")
	})
}

// This catches a Watch that goes on after its end, or does not say why it ended.
func TestWatch_Ends(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		all := func(ctx context.Context, c *holdfast.Client, options ...holdfast.WatchOption) (errs []error) {
			for e := range c.Watch(ctx, "*", options...) {
				if e.Err != nil {
					errs = append(errs, e.Err)
				}
			}
			return errs
		}
		if errs := all(redistest.Within(t, 5*time.Second), c); len(errs) != 0 {
			t.Errorf("%v", errs)
		}
		if errs := all(t.Context(), c, holdfast.WatchEvery(-1)); len(errs) != 1 || !errors.Is(errs[0], holdfast.ErrBadArgument) {
			t.Errorf("%v", errs)
		}
		other := known(t, mini, "pod-1")
		time.AfterFunc(3*time.Second, func() { _ = other.Close() })
		for range 2 { // while it watches, and when it is closed already
			if errs := all(t.Context(), other); len(errs) != 1 || !errors.Is(errs[0], holdfast.ErrClosed) {
				t.Errorf("%v", errs)
			}
		}
	})
}

// This catches an outage that is not reported, or that ends the Watch, and what is gone for a while only because nobody
// could look.
func TestWatch_AnOutage(t *testing.T) {
	for _, pattern := range []string{"x", "*"} {
		unreachable(t, func(t *testing.T, c *holdfast.Client, mini *redistest.MiniServer, proxy *redistest.FaultProxy) {
			l := clienttest.Grab(t, known(t, mini, "pod-1").Mutex("x"))
			w := watched(t, c, pattern)
			defer w.stop()
			w.says(t)
			proxy.Refuse(true)
			proxy.Cut()
			time.Sleep(10 * time.Second)
			w.says(t)
			if e := w.lastLook(); !errors.Is(e.Err, holdfast.ErrUnavailable) || len(e.Now) != 1 {
				t.Errorf("%v, %v", e, e.Now)
			}
			must(t, l.Release(t.Context()))
			proxy.Refuse(false)
			time.Sleep(10 * time.Second)
			w.says(t, "x released 0")
		})
	}
}

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
		"ten a second":       {hold: 95 * time.Millisecond, gap: 5 * time.Millisecond, of: mutex, holders: 1, found: 2},
		"two a second":       {hold: 470 * time.Millisecond, gap: 50 * time.Millisecond, of: mutex, holders: 1, found: 4},
		"one in 800 ms":      {hold: 700 * time.Millisecond, gap: 100 * time.Millisecond, of: mutex, holders: 1, found: 10},
		"handed over":        {hold: 45 * time.Millisecond, gap: 5 * time.Millisecond, of: mutex, holders: 2, found: 2},
		"long holds":         {hold: 4 * time.Second, gap: 3 * time.Second, of: mutex, holders: 1, found: 20, exactly: true},
		"long, handed over":  {hold: 4 * time.Second, of: mutex, holders: 2, found: 40, exactly: true},
		"a writer's":         {hold: 300 * time.Millisecond, gap: 50 * time.Millisecond, of: func(c *holdfast.Client) holdfast.Locker { return c.RWMutex("x") }, holders: 1, found: 2},
		"a reader's":         {hold: 300 * time.Millisecond, gap: 50 * time.Millisecond, of: func(c *holdfast.Client) holdfast.Locker { return c.RWMutex("x").RLocker() }, holders: 1, found: 2},
		"an only permit":     {hold: 40 * time.Millisecond, gap: 700 * time.Millisecond, of: permitOf, holders: 1},
		"a long-held permit": {hold: 4 * time.Second, gap: 3 * time.Second, of: permitOf, holders: 1, found: 20, exactly: true},
	} {
		t.Run(what, func(t *testing.T) {
			redistest.Bubble(t, func(t *testing.T) {
				const each = 20
				server := redistest.Mini(t)
				looks := holdfast.New(server.Client())
				defer looks.Close()
				if what == "an only permit" || what == "a long-held permit" {
					must(t, looks.PermitSemaphore("x").SetPermits(t.Context(), 1))
				}
				f := watched(t, looks, "x")
				time.Sleep(1020 * time.Millisecond) // so that regular looks fall into holds
				begun := time.Now()
				done := make(chan struct{})
				for range tc.holders {
					go func() {
						defer func() { done <- struct{}{} }()
						c := holdfast.New(server.Client())
						defer c.Close()
						for range each {
							l, err := tc.of(c).Lock(context.Background())
							redistest.Check(t, err)
							time.Sleep(tc.hold)
							redistest.Check(t, l.Release(context.Background()))
							time.Sleep(tc.gap)
						}
					}()
				}
				for range tc.holders {
					<-done
				}
				took := time.Since(begun)
				time.Sleep(3 * time.Second)
				f.stop()
				ended, found, unseen := tally(f.words)
				if ended+unseen != each*tc.holders {
					t.Errorf("%d ends that were found and %d that were not, of %d: %q", ended, unseen, each*tc.holders, f.words)
				}
				if found < tc.found || tc.exactly && unseen > 0 {
					t.Errorf("%d holds found, %d not", found, unseen)
				}
				if most := int((took + 4*time.Second) / (100 * time.Millisecond)); f.looks > most {
					t.Errorf("%d looks in %v", f.looks, took)
				}
			})
		})
	}
}

func permitOf(c *holdfast.Client) holdfast.Locker { return c.PermitSemaphore("x").Locker(1) }

// tally counts, among events as words, ends, grants, and releases of holds that were not seen.
func tally(all []string) (ended, granted, unseen int) {
	for _, e := range all {
		what := strings.Fields(e)[1]
		switch holdfast.Happening(what) {
		case holdfast.EventReleased, holdfast.EventExpired:
			ended++
		case holdfast.EventPassed:
			ended, granted = ended+1, granted+1
		case holdfast.EventGranted:
			granted++
		case holdfast.EventUnseen:
			var n int
			_, _ = fmt.Sscanf(e, "x unseen %d", &n)
			unseen += n
		}
	}
	return ended, granted, unseen
}
