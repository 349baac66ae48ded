// This file is about what a holder is told when its lease ends: why, after how long, only once; and, with Notified, at
// once.

package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

// leased has the kinds whose leases are renewed. locker returns a kind's locker for the name, and
// key is the key that has the hold.
var leased = map[string]struct {
	locker func(p *world.Process) lease.Locker
	key    string
}{
	"mutex":     {func(p *world.Process) lease.Locker { return p.MyLock }, world.Name},
	"fairmutex": {func(p *world.Process) lease.Locker { return p.FairMutex(world.Name) }, world.Name},
	"reader":    {func(p *world.Process) lease.Locker { return p.RWMutex(world.Name).RLocker() }, world.Name},
	"writer":    {func(p *world.Process) lease.Locker { return p.RWMutex(world.Name) }, world.Name},
	"slots":     {func(p *world.Process) lease.Locker { return p.Slots(world.Name, 1).Locker() }, "holdfast_slots:{" + world.Name + "}"},
	"permits":   {permitsOf, "{" + world.Name + "}:timeout"},
}

// permitsOf sets three permits for the name, and returns the locker of one permit.
func permitsOf(p *world.Process) lease.Locker {
	if err := p.W.RDB.Set(p.W.T.Context(), world.Name, 3, 0).Err(); err != nil {
		p.W.T.Fatal(err)
	}
	return p.PermitSemaphore(world.Name).Locker(1)
}

// overwrite replaces the hold with a string of an application.
func overwrite(w *world.World, key string) {
	w.T.Helper()
	must(w.T, w.RDB.Set(w.T.Context(), key, "precious", 0).Err())
}

// gone has the ways in which the server can lose a hold. Any key but a Mutex's is taken by nobody.
var gone = map[string]func(w *world.World, key string){
	"deleted":     func(w *world.World, key string) { w.Mini.Del(key) },
	"flushed":     func(w *world.World, _ string) { w.Mini.FlushAll() },
	"overwritten": overwrite,
	"taken by another": func(w *world.World, key string) {
		w.Mini.Del(key)
		w.RDB.HSet(w.T.Context(), key, "6e0e2d3c-0000-4000-8000-000000000000:1", 1)
		w.RDB.PExpire(w.T.Context(), key, 15*time.Second)
	},
}

// Whoever asks next finds that the hold is gone: the next renewal, or a call of the holder. It says
// so, the lease ends, nothing in Redis changes, and nothing more is renewed.
func TestWhatIsGoneIsFoundByTheNextRequest(t *testing.T) {
	calls := map[string]func(m lease.Locker, l *lease.Lease) error{
		"the renewal":   nil,
		"Release":       func(_ lease.Locker, l *lease.Lease) error { return l.Release(context.Background()) },
		"Extend":        func(_ lease.Locker, l *lease.Lease) error { return l.Extend(context.Background(), time.Minute) },
		"Detach":        func(_ lease.Locker, l *lease.Lease) error { _, err := l.Detach(context.Background()); return err },
		"a nested Lock": func(m lease.Locker, l *lease.Lease) error { return second(m.Lock(l.Context(context.Background()))) },
	}
	for kind, k := range leased {
		for how, lose := range gone {
			for what, call := range calls {
				if kind != "mutex" && (how == "taken by another" || what == "Detach" || what == "a nested Lock") {
					continue // no hash, or not what every kind can do
				}
				play(t, kind+" "+how+", "+what, func(t *testing.T, w *world.World) {
					p := w.Process()
					m := k.locker(p)
					l := w.Lock(t.Context(), m)
					ctx := l.Context(t.Context())
					w.At(12 * time.Second) // it has been renewed once
					lose(w, k.key)
					stored := func() string {
						return fmt.Sprint(w.RDB.HGetAll(t.Context(), k.key).Val(), w.RDB.Get(t.Context(), k.key).Val())
					}
					before := stored()
					want := []error{holdfast.ErrLost}
					if how == "overwritten" {
						want = append(want, holdfast.ErrWrongType)
					}
					if call != nil {
						err := call(m, l)
						world.WantErr(t, err, want...)
						if text := fmt.Sprint(err); !strings.Contains(text, world.Name) || what != "a nested Lock" && !strings.Contains(text, l.Owner().Short()) || strings.Contains(text, l.Owner().String()) {
							t.Errorf("%q does not name the lock and, in short, the owner", text)
						}
					} else {
						<-ctx.Done()
						world.Within(t, "found at", w.Now(), 19_900*time.Millisecond, 20_100*time.Millisecond)
					}
					if what != "Release" {
						world.WantErr(t, context.Cause(ctx), want...)
						world.WantErr(t, l.Release(t.Context()), want...)
					}
					world.Equal(t, stored(), before, "the key has %q, had %q", before)
					sent := p.Runs("")
					w.At(75 * time.Second)
					if n := p.Runs("") - sent; n > 1 { // a mark of a reader, or permits
						t.Errorf("%d requests after the loss", n)
					}
					w.Mini.Del(k.key)
					w.Mini.Del(world.Name)
				})
			}
		}
	}
}

// lossesOf has the ways in which a lease ends by itself. says is the part of the error's text that
// follows the owner: "lease lost after ..." or another reason.
var lossesOf = []struct {
	what    string
	options []lease.Option
	end     func(w *world.World, p *world.Process)
	is      error
	says    string
	reason  string // in the log; "" means no log line
}{
	{"deleted", nil, func(w *world.World, p *world.Process) { w.Mini.Del(world.Name) }, holdfast.ErrLost,
		"lease lost after 10s: Redis no longer has it (released by force, deleted, or failed over)", "server"},
	{"overwritten", nil, func(w *world.World, p *world.Process) { overwrite(w, world.Name) }, holdfast.ErrLost,
		"lease lost after 10s: Redis no longer has it: the key holds another type of value", "server"},
	{"unreachable", nil, func(w *world.World, p *world.Process) { p.Unplug(true) }, holdfast.ErrLost,
		"lease lost after 29.7s: no renewal got through for 19.7s (last failure: ", "deadline"},
	{"silent", nil, func(w *world.World, p *world.Process) { p.Each(silence) }, holdfast.ErrLost,
		"lease lost after 29.7s: no renewal got through for 19.7s (last failure: ", "deadline"},
	{"expired", []lease.Option{lease.Fixed(10 * time.Second)}, nil, holdfast.ErrExpired, "fixed lease over after 10s", ""},
	{"held too long", []lease.Option{lease.MaxHold(15 * time.Second)}, nil, holdfast.ErrMaxHold,
		"held for longer than allowed (held for 15s)", "max_hold"},
	{"closed", nil, func(w *world.World, p *world.Process) { p.Close() }, holdfast.ErrClosed, "client closed (held for 1s)", ""},
}

// silence makes Redis answer nothing.
func silence(world.Sending) redistest.Fault { return redistest.Silence }

func TestALossSaysWhyAndAfterHowLong(t *testing.T) {
	for _, tc := range lossesOf {
		play(t, tc.what, func(t *testing.T, w *world.World) {
			var log redistest.Log
			p := w.Process(holdfast.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			l := w.Lock(t.Context(), p.Mutex(world.Name, tc.options...))
			ctx := l.Context(t.Context())
			w.At(time.Second)
			if tc.end != nil {
				tc.end(w, p)
			}
			<-ctx.Done()
			if tc.reason == "deadline" && w.PTTL(world.Name) <= 0 {
				t.Error("the holder knows after Redis has given the lock up")
			}
			p.Unplug(false)
			p.Each(nil)
			start := fmt.Sprintf("holdfast: %%s mutex %q: owner %s: %s", world.Name, l.Owner().Short(), tc.says)
			wantText(t, context.Cause(ctx), fmt.Sprintf(start, "lease on"))
			wantText(t, l.Err(), fmt.Sprintf(start, "lease on"))
			wantText(t, l.Release(t.Context()), fmt.Sprintf(start, "release"))
			world.WantErr(t, context.Cause(ctx), tc.is)
			world.WantErr(t, l.Err(), tc.is)
			synctest.Wait()
			told := log.String()
			lost := map[bool]int{true: 1}[tc.reason != ""]
			world.Equal(t, strings.Count(told, "holdfast: lost"), lost, "%d lines of a loss in the log, want %d:\n%s", lost, told)
			if lost > 0 && (!strings.Contains(told, "reason="+tc.reason+" ") || !strings.Contains(told, tc.says)) {
				t.Errorf("the log says\n%swant reason=%s and %q", told, tc.reason, tc.says)
			}
			w.At(61 * time.Second)
			w.Mini.Del(world.Name)
		})
	}
}

// wantText fails the test unless err's text begins with start and passes wantPlain.
func wantText(t *testing.T, err error, start string) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), start) {
		t.Errorf("error\n%v, want\n%s...", err, start)
		return
	}
	wantPlain(t, err)
}

// wantPlain fails the test unless err's text has one prefix and one line, names the lock at most
// once, and says nothing about Redis's scripts.
func wantPlain(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	if strings.Count(text, "holdfast:") != 1 || !strings.HasPrefix(text, "holdfast: ") {
		t.Errorf("not one prefix: %s", text)
	}
	if strings.Contains(text, "\n") || strings.Contains(text, "user_script") || strings.Contains(text, "script: ") {
		t.Errorf("not one line of plain words: %s", text)
	}
	if strings.Count(text, world.Name) > 1 {
		t.Errorf("the name more than once: %s", text)
	}
}

// The span of the release says when the lease was lost, and why. A fixed lease that ends as agreed sets off no alarm: it is
// not counted as lost, and its release is no failure.
func TestTheReleaseOfALeaseThatHasEndedSaysWhy(t *testing.T) {
	for what, tc := range map[string]struct {
		option        holdfast.LeaseOption
		lost          int64
		reason, cause string
	}{
		"deleted":          {nil, 1, "server", "Redis no longer has it"},
		"ended, as agreed": {holdfast.Fixed(10 * time.Second), 0, "", "fixed lease over"},
	} {
		play(t, what, func(t *testing.T, w *world.World) {
			spans, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
			p := w.Process(
				holdfast.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))),
				holdfast.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
			l := w.Lock(t.Context(), p.Mutex(world.Name, tc.option))
			if tc.lost > 0 {
				w.Mini.Del(world.Name)
			}
			w.At(11 * time.Second)
			world.WantErr(t, l.Release(t.Context()), holdfast.ErrLost)

			var all metricdata.ResourceMetrics
			must(t, reader.Collect(t.Context(), &all))
			counted := make(map[string]int64)
			for _, m := range all.ScopeMetrics[0].Metrics {
				switch data := m.Data.(type) {
				case metricdata.Sum[int64]:
					for _, point := range data.DataPoints { // of each reason
						counted[m.Name] += point.Value
					}
				case metricdata.Histogram[float64]:
					for _, point := range data.DataPoints {
						counted[m.Name] += int64(point.Count)
					}
				}
			}
			lost, held := counted["holdfast.lock.lost"], counted["holdfast.hold.duration"]
			if lost != tc.lost || held+lost != 1 {
				t.Errorf("%d counted as lost, want %d; %d durations", lost, tc.lost, held)
			}
			release := spans.Ended()[1]
			events := release.Events()
			if len(events) != 1 || events[0].Name != "holdfast.lock.lost" {
				t.Fatalf("events of the release: %v", events)
			}
			world.Within(t, "ended at", events[0].Time.Sub(w.Start), 9_890*time.Millisecond, 10_100*time.Millisecond)
			said := make(map[string]string)
			for _, a := range events[0].Attributes {
				said[string(a.Key)] = a.Value.String()
			}
			if said["holdfast.reason"] != tc.reason || !strings.Contains(said["holdfast.cause"], tc.cause) {
				t.Errorf("the event says %v", said)
			}
			if status := release.Status(); (status.Description == "") != (tc.lost == 0) {
				t.Errorf("the status of the release: %v", status)
			}
		})
	}
}

func TestDoTellsALossOnce(t *testing.T) {
	for what, stopped := range map[string]func(ctx context.Context) error{
		"with the cause": func(ctx context.Context) error { return fmt.Errorf("work stopped: %w", context.Cause(ctx)) },
		"without":        func(ctx context.Context) error { return ctx.Err() },
	} {
		play(t, what, func(t *testing.T, w *world.World) {
			err := holdfast.Do(t.Context(), w.Process().MyLock, func(ctx context.Context) error {
				w.Mini.Del(world.Name)
				<-ctx.Done()
				return stopped(ctx)
			})
			world.WantErr(t, err, holdfast.ErrLost)
			if text := err.Error(); strings.Count(text, "lease lost") != 1 || strings.Contains(text, "\n") || errors.Is(err, context.Canceled) != (what == "without") {
				t.Errorf("not told once, on one line: %s", text)
			}
		})
	}
}

// The error of a wait that ends with its context matches the cause that the context was given.
func TestAWaitThatEndsMatchesTheCauseOfItsContext(t *testing.T) {
	shutdown := errors.New("the program shuts down")
	for kind, k := range leased {
		if kind == "permits" || kind == "reader" {
			continue // these kinds would not wait
		}
		play(t, kind, func(t *testing.T, w *world.World) {
			l := w.Lock(t.Context(), k.locker(w.Process()))
			ctx, cancel := context.WithCancelCause(t.Context())
			a := w.GoLock(ctx, k.locker(w.Process()))
			w.At(5 * time.Second)
			cancel(shutdown)
			_, err := a.Result()
			world.WantErr(t, err, holdfast.ErrBusy, context.Canceled, shutdown)
			wantPlain(t, err)
			w.Release(l)
		})
	}
}

// ForceRelease leaves a hash alone that is not a lock.
func TestForceReleaseLeavesAnApplicationsOwnHashAlone(t *testing.T) {
	for what, fields := range map[string][]any{
		"fields of words":            {"title", "precious", "price", "42"},
		"a field that looks like it": {"item:1", "precious"},
		"beside a holder":            {"6e0e2d3c-0000-4000-8000-000000000000:1", 1, "title", "precious"},
	} {
		play(t, what, func(t *testing.T, w *world.World) {
			p := w.Process()
			w.RDB.HSet(t.Context(), world.Name, fields...)
			before := w.Holders(world.Name)
			for kind, m := range map[string]interface {
				ForceRelease(context.Context, ...holdfast.Owner) (bool, error)
			}{"mutex": p.MyLock, "fairmutex": p.FairMutex(world.Name), "rwlock": p.RWMutex(world.Name)} {
				held, err := m.ForceRelease(t.Context())
				if kind != "rwlock" { // an RWMutex sees no holder in the hash
					world.WantErr(t, err, holdfast.ErrWrongType)
					wantPlain(t, err)
				}
				if held {
					t.Errorf("%s: released by force", kind)
				}
			}
			if after := w.Holders(world.Name); !slices.Equal(before, after) {
				t.Errorf("the hash is %q now, was %q", after, before)
			}
			w.Mini.Del(world.Name)
		})
	}
}

// force takes the lock of that name away by another process.
func force(t *testing.T, q *world.Process, name string) {
	t.Helper()
	if held, err := q.Mutex(name).ForceRelease(t.Context()); !held || err != nil {
		t.Fatalf("force release: %v (%v)", held, err)
	}
	synctest.Wait()
}

// With the option a holder knows at once; without it, by the next renewal, and so if the message is lost. If what it asks
// then is lost, or the answer, it asks again.
func TestWatched(t *testing.T) {
	const at, lost = 25 * time.Second, 6 * time.Second
	mutex := func(options ...holdfast.LeaseOption) func(p *world.Process) holdfast.Locker {
		return func(p *world.Process) holdfast.Locker { return p.Mutex(world.Name, options...) }
	}
	for what, tc := range map[string]struct {
		lock   func(p *world.Process) holdfast.Locker
		name   string
		latest time.Duration   // after the release
		fault  redistest.Fault // that the next renewal meets
	}{
		"a mutex":        {mutex(holdfast.Notified()), world.Name, 0, nil},
		"a stripe":       {func(p *world.Process) holdfast.Locker { return p.Striped("s", 1, holdfast.Notified()).For("x") }, "s:0", 0, nil},
		"fair":           {func(p *world.Process) holdfast.Locker { return p.FairMutex("f", holdfast.Notified()) }, "f", 0, nil},
		"a grace":        {mutex(holdfast.Notified(), holdfast.Grace(grace)), world.Name, 0, nil},
		"fixed":          {mutex(holdfast.Notified(), holdfast.Fixed(time.Minute)), world.Name, 0, nil},
		"no option":      {mutex(), world.Name, 10 * time.Second, nil},
		"mute":           {mutex(holdfast.Notified()), world.Name, 10 * time.Second, nil},
		"a lost request": {mutex(holdfast.Notified()), world.Name, lost, redistest.DropBefore},
		"a lost reply":   {mutex(holdfast.Notified()), world.Name, lost, redistest.CloseAfterExec},
		"half a reply":   {mutex(holdfast.Notified()), world.Name, lost, redistest.HalfReply},
	} {
		play(t, what, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			l := w.Lock(t.Context(), tc.lock(p))
			ctx := l.Context(t.Context())
			w.At(at)
			if what == "mute" {
				p.Mute()
				defer p.Unmute()
			}
			if tc.fault != nil {
				p.On(world.RenewRun, 1, tc.fault)
			}
			force(t, q, tc.name)
			if tc.latest == 10*time.Second {
				world.WantEnd(t, ctx, nil)
			}
			<-l.Done()
			world.WantEnd(t, ctx, holdfast.ErrLost)
			world.Within(t, "notified", w.Now(), at, at+tc.latest)
			w.RDB.Del(t.Context(), "holdfast_stripes:s")
		})
	}
}

// The lock is taken away between a renewal and its answer, which says that the lock is held. Redis is asked again.
func TestWatched_WhileARenewalIsUnderWay(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		l := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Notified()))
		w.At(9900 * time.Millisecond)
		p.On(world.RenewRun, 1, redistest.DelayReply(300*time.Millisecond))
		w.At(10100 * time.Millisecond)
		force(t, q, world.Name)
		<-l.Done()
		world.Within(t, "notified", w.Now(), 10100*time.Millisecond, 10500*time.Millisecond)
	})
}

// A message is a hint to ask. However many come, from whomever, a lease that Redis has goes on, and Redis is asked ten
// times a second at most. If Redis cannot be asked, the lease lasts as long as any other.
func TestAMessageAloneEndsNoLease(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Notified()))
		ctx := l.Context(t.Context())
		channel := fmt.Sprintf("holdfast_lock_grant:{%s}:%s", world.Name, l.Owner().String()[:36])
		w.At(time.Second)
		p.Forget()
		flood := func() {
			for range 1000 {
				w.RDB.Publish(t.Context(), channel, "0")
				time.Sleep(2 * time.Millisecond)
			}
		}
		flood()
		if n := p.Runs(world.RenewRun); n < 2 || n > 21 {
			t.Errorf("%d renewals in two seconds", n)
		}
		world.WantEnd(t, ctx, nil)
		p.Each(func(world.Sending) redistest.Fault { return redistest.DropBefore })
		last := time.Until(l.Deadline())
		flood()
		if err := l.Err(); err != nil || last < 20*time.Second {
			t.Errorf("it had %v to go, and has ended: %v", last, err)
		}
		p.Each(nil)
		w.At(40 * time.Second)
		w.Release(l)
	})
}

// Goroutines of a process pass the lock on only among those that watch, and each of these knows at once.
func TestWhatIsPassedOnIsWatched(t *testing.T) {
	for what, first := range map[string][]holdfast.LeaseOption{"from one that is notified": {holdfast.Notified()}, "from one that does not": nil} {
		play(t, what, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			l := w.Lock(t.Context(), q.MyLock)
			a := w.GoLock(t.Context(), p.Mutex(world.Name, first...))
			synctest.Wait()
			b := w.GoLock(t.Context(), p.Mutex(world.Name, holdfast.Notified()))
			w.At(time.Second)
			w.Release(l)
			w.Release(granted(t, a))
			l = granted(t, b)
			w.At(12 * time.Second)
			at := w.Now()
			force(t, q, world.Name)
			<-l.Done()
			world.Within(t, "notified", w.Now(), at, at)
		})
	}
}

// A holder without the option listens to nothing, and one that had it no longer does. Then a release by force has
// nobody to notify.
func TestOnlyThoseWhoAreNotifiedListen(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		w.Release(w.Lock(t.Context(), p.MyLock))
		l := w.Lock(t.Context(), p.MyLock)
		world.Equal(t, p.Net.Count("SUBSCRIBE")+p.Net.Count("SSUBSCRIBE"), 0, "%d subscriptions without the option")
		force(t, q, world.Name)
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		channels := func() int { return len(w.RDB.PubSubChannels(context.Background(), "holdfast_lock_grant:*").Val()) }
		l = w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Notified()))
		synctest.Wait()
		world.Equal(t, channels(), 1, "%d channels while it is watched")
		w.Release(l)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		world.Equal(t, channels(), 0, "%d channels after the release")
	})
}
