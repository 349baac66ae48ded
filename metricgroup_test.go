// This file shows what WithMetricGroup does to the metrics, for each kind of synchronizer, and that its
// function keeps nobody but the call that asks it.

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/once"
)

// beforeColon is the group of "orders:42": "orders".
func beforeColon(name string) string {
	group, _, _ := strings.Cut(name, ":")
	return group
}

// groupsOf returns the groups that each metric has, by kind: "holdfast.lock.active mutex".
func groupsOf(t *testing.T, reader sdkmetric.Reader) map[string][]string {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	groups := make(map[string][]string)
	add := func(metric string, set attribute.Set) {
		kind, _ := set.Value("holdfast.kind")
		group, there := set.Value("holdfast.group")
		key := strings.TrimSpace(metric + " " + kind.AsString())
		if value := group.AsString(); !there {
			groups[key] = append(groups[key], "none")
		} else if !slices.Contains(groups[key], value) {
			groups[key] = append(groups[key], value)
		}
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes)
				}
			case metricdata.Histogram[int64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes)
				}
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes)
				}
			}
		}
	}
	return groups
}

// wantGroups fails the test unless every metric that has a kind has that group, and no other metric has one.
func wantGroups(t *testing.T, reader sdkmetric.Reader, want string, metrics ...string) {
	t.Helper()
	got := groupsOf(t, reader)
	for _, metric := range metrics {
		if got[metric] == nil {
			t.Errorf("%s was not recorded", metric)
		}
	}
	for metric, groups := range got {
		_, kind, ofKind := strings.Cut(metric, " ")
		one := want
		if !ofKind || kind == "multi" {
			one = "none"
		}
		if len(slices.Compact(slices.Sorted(slices.Values(groups)))) != 1 || groups[0] != one {
			t.Errorf("%s has the groups %q, want %q", metric, groups, one)
		}
	}
}

// A lock's whole life: it waits, holds, is renewed, is reported as held for long, loses, releases.
func TestTheGroupOfANameIsOnItsMetrics(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		o, options := newTold()
		p, q := w.Process(append(options, holdfast.WithMetricGroup(beforeColon))...), w.Process()
		held := w.Lock(t.Context(), q.Mutex("orders:1"))
		waits := w.GoLock(t.Context(), p.Mutex("orders:1", holdfast.Renewed(9*time.Second)))
		w.At(2 * time.Second)
		w.Release(held)
		l, err := waits.Result()
		if err != nil {
			t.Fatal(err)
		}
		w.At(10 * time.Second) // it has been renewed
		watch, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		world.WantErr(t, p.Monitor(watch, holdfast.MonitorOptions{Threshold: time.Second}), context.DeadlineExceeded)
		w.Release(l)
		lost := w.Lock(t.Context(), p.Mutex("orders:2", holdfast.Renewed(9*time.Second)))
		expires := w.Lock(t.Context(), p.Mutex("orders:3", holdfast.Fixed(time.Second)))
		w.Mini.Del("orders:2")
		w.At(20 * time.Second)
		world.WantErr(t, lost.Err(), holdfast.ErrLost)
		world.WantErr(t, expires.Err(), holdfast.ErrExpired)
		wantGroups(t, o.reader, "orders",
			"holdfast.acquire.duration mutex", "holdfast.hold.duration mutex", "holdfast.lock.active mutex",
			"holdfast.waiter.active mutex", "holdfast.renewals mutex", "holdfast.lost mutex",
			"holdfast.wakeups mutex", "holdfast.lock.long_held mutex",
			"holdfast.renewal.duration", "holdfast.pubsub.reconnects")
	})
}

func TestEveryKindHasItsGroup(t *testing.T) {
	work := func(context.Context) error { return nil }
	for kind, use := range map[string]func(t *testing.T, c *holdfast.Client) error{
		"fairmutex": func(t *testing.T, c *holdfast.Client) error {
			return holdfast.Do(t.Context(), c.FairMutex("orders:1"), work)
		},
		"rwlock.read": func(t *testing.T, c *holdfast.Client) error {
			return holdfast.Do(t.Context(), c.RWMutex("orders:1").RLocker(), work)
		},
		"rwlock.write": func(t *testing.T, c *holdfast.Client) error {
			return holdfast.Do(t.Context(), c.RWMutex("orders:1"), work)
		},
		"mutex": func(t *testing.T, c *holdfast.Client) error {
			return holdfast.Do(t.Context(), c.Striped("orders:1", 4).For("a key"), work)
		},
		"multi": func(t *testing.T, c *holdfast.Client) error {
			return holdfast.Do(t.Context(), holdfast.NewMultiLock(c.Mutex("orders:1"), c.Mutex("orders:2")), work)
		},
		"quorum": func(t *testing.T, c *holdfast.Client) error {
			return holdfast.Do(t.Context(), holdfast.NewQuorum("orders:1", []*holdfast.Client{c}), work)
		},
		"once": func(t *testing.T, c *holdfast.Client) error {
			return once.Do(t.Context(), c.Once("orders:1"), "a key", func(context.Context) error { return nil })
		},
		"semaphore": func(t *testing.T, c *holdfast.Client) error {
			s := c.Semaphore("orders:1")
			_, err := s.TrySetPermits(t.Context(), 1)
			return errors.Join(err, s.Acquire(t.Context(), 1))
		},
		"latch": func(t *testing.T, c *holdfast.Client) error {
			_, err := c.Latch("orders:1").TrySetCount(t.Context(), 1)
			time.AfterFunc(time.Second, func() { _, _ = c.Latch("orders:1").CountDown(context.Background()) })
			return errors.Join(err, c.Latch("orders:1").Wait(t.Context()))
		},
		"barrier": func(t *testing.T, c *holdfast.Client) error {
			b := c.Barrier("orders:1", 2)
			time.AfterFunc(time.Second, func() { _, _ = b.Await(context.Background()) })
			_, err := b.Await(t.Context())
			return err
		},
		"leader.watch": func(t *testing.T, c *holdfast.Client) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := c.Leader("orders:1").Run(ctx, func(ctx context.Context, _ *leader.Term) error {
				<-ctx.Done()
				return nil
			})
			if errors.Is(err, context.DeadlineExceeded) {
				return nil
			}
			return err
		},
	} {
		t.Run(kind, func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				o, options := newTold()
				p := w.Process(append(options, holdfast.WithMetricGroup(beforeColon))...)
				if err := use(t, p.Client); err != nil {
					t.Fatal(err)
				}
				w.At(10 * time.Second)
				var of []string
				for metric := range groupsOf(t, o.reader) {
					if strings.HasSuffix(metric, " "+kind) {
						of = append(of, metric)
					}
				}
				if len(of) == 0 {
					t.Errorf("nothing was recorded of that kind")
				}
				wantGroups(t, o.reader, "orders")
				w.Mini.FlushAll()
			})
		})
	}
}

// Groups are of the program's names, which have no prefix of an environment.
func TestTheGroupIsOfTheNameAsTheProgramUsesIt(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		o, options := newTold()
		p := w.Process(append(options, holdfast.WithMetricGroup(beforeColon),
			holdfast.WithNameMapper(func(name string) string { return "staging:" + name }))...)
		w.Release(w.Lock(t.Context(), p.Mutex("orders:1")))
		wantGroups(t, o.reader, "orders", "holdfast.acquire.duration mutex")
	})
}

func TestAMetricGroupThatPanicsLosesNoGrant(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		o, options := newTold()
		p := w.Process(append(options, holdfast.WithMetricGroup(func(string) string { panic("a function of the user's") }))...)
		w.Release(w.Lock(t.Context(), p.MyLock))
		closeWithin(t, p, 0)
		wantGroups(t, o.reader, "other", "holdfast.acquire.duration mutex")
		w.WantFree()
	})
}

func TestAMetricGroupThatBlocksKeepsItsOwnCallOnly(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		block, unblock := blockade()
		_, options := newTold()
		p := w.Process(append(options, holdfast.WithMetricGroup(func(name string) string {
			if name == "slow" {
				<-block
			}
			return name
		}))...)
		l := w.Lock(t.Context(), p.Mutex("kept", holdfast.Renewed(9*time.Second)))
		stuck := w.GoLock(t.Context(), p.Mutex("slow"))
		w.At(time.Minute)
		w.Release(w.Lock(t.Context(), p.Mutex("other")))
		w.Release(l)
		closeWithin(t, p, closeBound)
		unblock()
		if _, err := stuck.Result(); !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("the call that was blocked returned %v", err)
		}
	})
}

func TestMoreGroupsThanAClientTellsApart(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		o, options := newTold()
		p := w.Process(append(options, holdfast.WithMetricGroup(func(name string) string { return name }))...)
		for i := range 30 {
			w.Release(w.Lock(t.Context(), p.Mutex(fmt.Sprint("name ", i))))
		}
		if got := groupsOf(t, o.reader)["holdfast.acquire.duration mutex"]; len(got) != 21 || !slices.Contains(got, "other") {
			t.Errorf("%d groups: %q", len(got), got)
		}
	})
}

// A hold that was taken over counts as one that was asked for.
func TestAHoldThatIsTakenOverIsCountedByKindAndGroup(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		o, options := newTold()
		p, q := w.Process(), w.Process(append(options, holdfast.WithMetricGroup(beforeColon))...)
		owner, err := w.Lock(t.Context(), p.Mutex("orders:1")).Detach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l, err := q.Mutex("orders:1", holdfast.Renewed(9*time.Second)).Attach(t.Context(), owner)
		if err != nil {
			t.Fatal(err)
		}
		w.At(10 * time.Second) // it has been renewed
		w.Release(l)
		wantGroups(t, o.reader, "orders", "holdfast.hold.duration mutex", "holdfast.lock.active mutex",
			"holdfast.renewals mutex", "holdfast.lost mutex")
		if groups, there := groupsOf(t, o.reader)["holdfast.lock.active"]; there {
			t.Errorf("a hold is counted without a kind: %v", groups)
		}
	})
}

// Once a candidate is elected, nobody asks the function for it. An election gives its lead up, whatever blocks.
func TestAMetricGroupThatBlocksKeepsNoLead(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		block, unblock := blockade()
		defer unblock()
		_, options := newTold()
		var asked atomic.Int64
		p := w.Process(append(options, holdfast.WithMetricGroup(func(name string) string {
			if asked.Add(1) > 1 {
				<-block
			}
			return name
		}))...)
		led := make(chan error, 1)
		go func() {
			led <- p.Leader("orders:1").Run(context.Background(), func(context.Context, *leader.Term) error {
				time.Sleep(time.Second)
				return nil
			})
		}()
		w.At(time.Minute)
		select {
		case err := <-led:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("the work has returned, and the lead is kept")
		}
	})
}
