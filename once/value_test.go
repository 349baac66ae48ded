// These tests show what callers of one key get, on virtual time: who does the work, who gets its
// result, what it costs Redis, and what holds when something goes wrong.

package once_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/once"
)

const (
	name = "charge"
	key  = "order 7"

	record  = "holdfast_once:{charge:order 7}"
	channel = "holdfast_once_channel:{charge:order 7}"
)

// play is world.Play. At the end every record goes, so that whatever else is left shows.
func play(t *testing.T, scene func(t *testing.T, w *world.World)) {
	t.Helper()
	world.Play(t, func(t *testing.T, w *world.World) {
		scene(t, w)
		for _, p := range w.Processes {
			p.Close()
		}
		for _, k := range w.Mini.Keys() {
			if ttl := w.Mini.TTL(k); ttl <= 0 {
				t.Errorf("%s stands without an expiry", k)
			}
			if strings.HasPrefix(k, "holdfast_once") || strings.HasPrefix(k, "holdfast_tick") {
				w.Mini.Del(k)
			}
		}
	})
}

// job is work that counts its runs.
type job struct {
	runs  atomic.Int32
	lasts time.Duration
	err   error
}

func (j *job) do(ctx context.Context) (string, error) {
	n := j.runs.Add(1)
	if j.lasts > 0 {
		select {
		case <-time.After(j.lasts):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	if j.err != nil {
		return "", j.err
	}
	return fmt.Sprintf("result %d", n), nil
}

// answer is what one call returned.
type answer struct {
	value string
	err   error
	at    time.Duration
}

// call calls Value on a goroutine of its own. The answer comes on the channel.
func call(ctx context.Context, w *world.World, o *once.Once, j *job) <-chan answer {
	c := make(chan answer, 1)
	go func() {
		value, err := once.Value(ctx, o, key, j.do)
		c <- answer{value, err, w.Now()}
	}()
	return c
}

func (a answer) want(t *testing.T, value string, targets ...error) {
	t.Helper()
	if a.value != value || a.err != nil && len(targets) == 0 {
		t.Errorf("got %q, %v, want %q", a.value, a.err, value)
	}
	world.WantErr(t, a.err, targets...)
}

func TestValue_IsDoneOnce(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		j := &job{lasts: time.Second}
		for i, process := range []*world.Process{p, p, q} {
			a := <-call(t.Context(), w, process.Once(name, once.Keep(time.Minute)), j)
			a.want(t, "result 1")
			if want := time.Second; a.at != want {
				t.Errorf("call %d returned at %v", i, a.at)
			}
		}
		w.At(time.Minute + 999*time.Millisecond)
		(<-call(t.Context(), w, q.Once(name), j)).want(t, "result 1")
		w.At(time.Minute + time.Second + time.Millisecond)
		(<-call(t.Context(), w, q.Once(name), j)).want(t, "result 2")
		if ttl := w.PTTL(record); ttl != once.DefaultKeep {
			t.Errorf("by default a result is kept for %v", ttl)
		}
		if w.Mini.Exists("holdfast_once_token:{charge:order 7}") {
			t.Error("a result that is kept for a day has its token beside it")
		}
	})
}

// A thousand callers in each of three processes cost two requests for each process that waits, and
// two for the one that works: to be granted it, and to write its result.
func TestValue_AThousandCallers(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		j := &job{lasts: 500 * time.Millisecond}
		var wait sync.WaitGroup
		var wrong atomic.Int32
		for range 3 {
			p := w.Process()
			for range 1000 {
				wait.Go(func() {
					value, err := once.Value(t.Context(), p.Once(name), key, j.do)
					if value != "result 1" || err != nil {
						wrong.Add(1)
					}
				})
			}
		}
		wait.Wait()
		if runs := j.runs.Load(); runs != 1 || wrong.Load() > 0 {
			t.Errorf("%d runs, %d wrong answers", runs, wrong.Load())
		}
		if w.Now() != j.lasts {
			t.Errorf("the last had its answer at %v", w.Now())
		}
		for i, p := range w.Processes {
			if n := p.Runs(""); n > 2 {
				t.Errorf("process %d sent %d requests", i, n)
			}
		}
	})
}

// A result that is too large for the message costs each waiting process one request more.
func TestValue_LargeResult(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		large := strings.Repeat("x", 16<<10+1)
		work := func(context.Context) (string, error) { time.Sleep(time.Second); return large, nil }
		var wait sync.WaitGroup
		for _, process := range []*world.Process{p, q} {
			wait.Go(func() {
				value, err := once.Value(t.Context(), process.Once(name), key, work)
				if value != large || err != nil || w.Now() != time.Second {
					t.Errorf("%d bytes, %v, at %v", len(value), err, w.Now())
				}
			})
			synctest.Wait()
		}
		wait.Wait()
		if n := q.Runs(""); n != 3 {
			t.Errorf("the process that waited sent %d requests", n)
		}
	})
}

// Nothing depends on a message.
func TestValue_MessagesLost(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		j := &job{lasts: 10 * time.Second}
		first := call(t.Context(), w, p.Once(name), j)
		synctest.Wait()
		q.Mute()
		defer q.Unmute()
		second := call(t.Context(), w, q.Once(name), j)
		(<-first).want(t, "result 1")
		a := <-second
		a.want(t, "result 1")
		world.Within(t, "the answer", a.at, 10*time.Second, 11250*time.Millisecond)
	})
}

// A message about other work than that which was under way says nothing.
func TestValue_StaleMessage(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		j := &job{lasts: 3 * time.Second}
		first := call(t.Context(), w, p.Once(name), j)
		synctest.Wait()
		second := call(t.Context(), w, q.Once(name), j)
		w.At(time.Second)
		for _, message := range []string{"7 result stale", "0", "", "7", "result", "7 error stale", " result stale"} {
			w.Mini.Publish(channel, message)
			synctest.Wait()
		}
		if len(second) > 0 {
			t.Fatalf("a message was believed: %+v", <-second)
		}
		(<-first).want(t, "result 1")
		(<-second).want(t, "result 1")
	})
}

func TestValue_ErrorsAreNotKept(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		bad := errors.New("no money")
		failing, working := &job{lasts: time.Second, err: bad}, &job{lasts: time.Second}
		first := call(t.Context(), w, p.Once(name), failing)
		synctest.Wait()
		second := call(t.Context(), w, p.Once(name), failing) // waits in the same process
		synctest.Wait()
		third := call(t.Context(), w, q.Once(name), working) // and in another one
		a := <-first
		if a.err != bad {
			t.Errorf("%v is not the very error", a.err)
		}
		if a.at != time.Second {
			t.Errorf("at %v", a.at)
		}
		b, c := <-second, <-third
		if runs := failing.runs.Load() + working.runs.Load(); b.err == nil && runs != 2 || b.err != nil && runs != 3 {
			t.Errorf("%d runs: %+v, %+v", runs, b, c)
		}
		c.want(t, "result 1")
		if c.at > 3*time.Second {
			t.Errorf("the last waited until %v", c.at)
		}
	})
}

func TestValue_ErrorsAreKeptIfAsked(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		bad := errors.New("no money")
		j := &job{lasts: time.Second, err: bad}
		first := call(t.Context(), w, p.Once(name, once.KeepErrors(time.Minute)), j)
		synctest.Wait()
		second := call(t.Context(), w, p.Once(name), j)
		third := call(t.Context(), w, q.Once(name), j)
		if a := <-first; a.err != bad {
			t.Errorf("%v is not the very error", a.err)
		}
		for _, other := range []<-chan answer{second, third, call(t.Context(), w, q.Once(name), j)} {
			a := <-other
			a.want(t, "", holdfast.ErrWorkFailed)
			if a.err == nil || !strings.HasSuffix(a.err.Error(), "no money") {
				t.Errorf("%v", a.err)
			}
		}
		if j.runs.Load() != 1 {
			t.Errorf("%d runs", j.runs.Load())
		}
		w.At(61*time.Second + time.Millisecond)
		j.err = nil
		(<-call(t.Context(), w, q.Once(name), j)).want(t, "result 2")
	})
}

// An error that only says that the caller has left is not kept.
func TestValue_ErrorsOfAnEndedContextAreNotKept(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		o := w.Process().Once(name, once.KeepErrors(time.Minute))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		j := &job{lasts: time.Minute}
		(<-call(ctx, w, o, j)).want(t, "", context.DeadlineExceeded)
		j.lasts = 0
		(<-call(t.Context(), w, o, j)).want(t, "result 2")
	})
}

// If the caller that works leaves, the next one does its own work, at once. A caller that waits and
// leaves disturbs nobody.
func TestValue_CancelledCallers(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		j := &job{lasts: 10 * time.Second}
		worker, leave := context.WithCancelCause(t.Context())
		impatient, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		first := call(worker, w, p.Once(name), j)
		synctest.Wait()
		behind := call(impatient, w, p.Once(name), j)
		second := call(t.Context(), w, p.Once(name), j)
		synctest.Wait()
		elsewhere := call(impatient, w, q.Once(name), j)
		for _, c := range []<-chan answer{behind, elsewhere} {
			a := <-c
			a.want(t, "", holdfast.ErrBusy, context.DeadlineExceeded)
			if a.at != 2*time.Second {
				t.Errorf("left at %v", a.at)
			}
		}
		if j.runs.Load() != 1 || len(first)+len(second) > 0 {
			t.Fatalf("%d runs", j.runs.Load())
		}
		w.At(3 * time.Second)
		why := errors.New("gone home")
		leave(why)
		(<-first).want(t, "", why)
		a := <-second
		a.want(t, "result 2")
		if a.at != 13*time.Second {
			t.Errorf("the next was done at %v", a.at)
		}
	})
}

func TestValue_PanicAndGoexit(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		o := w.Process().Once(name)
		for what, end := range map[string]func(){"panic": func() { panic("oh") }, "Goexit": runtime.Goexit} {
			ended := make(chan any)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var next <-chan answer
			go func() {
				defer func() { ended <- recover() }()
				_ = once.Do(t.Context(), o, key, func(context.Context) error {
					next = call(ctx, w, o, &job{})
					synctest.Wait()
					end()
					return nil
				})
			}()
			if why := <-ended; (why == "oh") != (what == "panic") {
				t.Errorf("%s: recovered %v", what, why)
			}
			if a := <-next; a.value != "result 1" || a.err != nil {
				t.Fatalf("%s: the next got %q, %v", what, a.value, a.err)
			}
			if err := o.Forget(t.Context(), key); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestValue_Mismatch(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		mine, theirs := once.Fingerprint([]byte("10 EUR")), once.Fingerprint([]byte("20 EUR"))
		j := &job{lasts: time.Second}
		first := call(t.Context(), w, p.Once(name, mine), j)
		synctest.Wait()
		for _, process := range []*world.Process{p, q} { // while it is under way
			a := <-call(t.Context(), w, process.Once(name, theirs), j)
			a.want(t, "", holdfast.ErrMismatch)
			if a.at != 0 {
				t.Errorf("told at %v", a.at)
			}
		}
		fits := call(t.Context(), w, p.Once(name, mine), j)
		unsaid := call(t.Context(), w, p.Once(name), j)
		for _, c := range []<-chan answer{first, fits, unsaid} {
			(<-c).want(t, "result 1")
		}
		for _, process := range []*world.Process{p, q} { // and when it is done
			(<-call(t.Context(), w, process.Once(name, theirs), j)).want(t, "", holdfast.ErrMismatch)
			(<-call(t.Context(), w, process.Once(name, mine), j)).want(t, "result 1")
			(<-call(t.Context(), w, process.Once(name), j)).want(t, "result 1")
		}
		if j.runs.Load() != 1 {
			t.Errorf("%d runs", j.runs.Load())
		}
	})
}

func TestValue_OnBusyFail(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		j := &job{lasts: time.Second}
		first := call(t.Context(), w, p.Once(name, once.OnBusy(once.Fail)), j)
		synctest.Wait()
		for _, process := range []*world.Process{p, q} {
			a := <-call(t.Context(), w, process.Once(name, once.OnBusy(once.Fail)), j)
			a.want(t, "", holdfast.ErrBusy)
			if a.at != 0 {
				t.Errorf("told at %v", a.at)
			}
		}
		waits := call(t.Context(), w, p.Once(name), j)
		(<-first).want(t, "result 1")
		(<-waits).want(t, "result 1")
		(<-call(t.Context(), w, q.Once(name, once.OnBusy(once.Fail)), j)).want(t, "result 1")
	})
}

func TestValue_TooLargeAResult(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		o := w.Process().Once(name, once.MaxSize(7), once.KeepErrors(time.Minute))
		j := &job{}
		a := <-call(t.Context(), w, o, j)
		a.want(t, "result 1", holdfast.ErrTooLarge)
		if a.err == nil || !strings.Contains(a.err.Error(), "8 bytes, at most 7") {
			t.Errorf("%v", a.err)
		}
		if w.Mini.Exists(record) {
			t.Error("something was written")
		}
		(<-call(t.Context(), w, w.Processes[0].Once(name, once.MaxSize(8)), j)).want(t, "result 2")
	})
}

// Work that asks for its own key would wait for itself.
func TestValue_CalledByItsOwnWork(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		err := once.Do(t.Context(), p.Once(name), key, func(ctx context.Context) error {
			if _, err := once.Value(ctx, p.Once("another"), key, (&job{}).do); err != nil {
				t.Error(err)
			}
			return once.Do(ctx, p.Once(name), key, func(context.Context) error { return nil })
		})
		world.WantErr(t, err, holdfast.ErrBadArgument)
	})
}

func TestToken(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		o := w.Process().Once(name)
		if once.Token(t.Context()) != 0 {
			t.Error("a token outside of work")
		}
		last := int64(0)
		for range 3 {
			_ = once.Do(t.Context(), o, key, func(ctx context.Context) error {
				inner, cancel := context.WithCancel(ctx)
				defer cancel()
				if token := once.Token(inner); token <= last {
					t.Errorf("token %d after %d", token, last)
				}
				last = once.Token(inner)
				return errors.New("again")
			})
		}
	})
}

func TestForget(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		j := &job{lasts: time.Second}
		if err := p.Once(name).Forget(t.Context(), key); err != nil {
			t.Errorf("nothing there: %v", err)
		}
		first := call(t.Context(), w, p.Once(name), j)
		synctest.Wait()
		world.WantErr(t, q.Once(name).Forget(t.Context(), key), holdfast.ErrBusy)
		(<-first).want(t, "result 1")
		if err := q.Once(name).Forget(t.Context(), key); err != nil {
			t.Error(err)
		}
		(<-call(t.Context(), w, p.Once(name), j)).want(t, "result 2")
	})
}

// A call that begins after Forget never gets what was forgotten, also if an earlier call of the
// process is about to get it.
func TestForget_DoesNotShareWhatWasForgotten(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		j := &job{lasts: time.Second}
		first := call(t.Context(), w, q.Once(name), j)
		synctest.Wait()
		slow := call(t.Context(), w, p.Once(name), j)
		synctest.Wait()
		p.Mute() // the message with the result is on its way to the one that waits
		(<-first).want(t, "result 1")
		if err := p.Once(name).Forget(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		fresh := call(t.Context(), w, p.Once(name), j)
		synctest.Wait()
		p.Unmute()
		(<-slow).want(t, "result 1")
		(<-fresh).want(t, "result 2")
	})
}

func TestClose(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		j := &job{lasts: time.Minute}
		works := call(t.Context(), w, p.Once(name), j)
		synctest.Wait()
		joins := call(t.Context(), w, p.Once(name), j)
		waits := call(t.Context(), w, q.Once(name), j)
		synctest.Wait()
		joinsToo := call(t.Context(), w, q.Once(name), j)
		synctest.Wait()
		q.Close()
		p.Close()
		for what, c := range map[string]<-chan answer{"works": works, "joins": joins, "waits": waits, "joins too": joinsToo} {
			a := <-c
			if a.value != "" || !errors.Is(a.err, holdfast.ErrClosed) || a.at != 0 {
				t.Errorf("%s: %+v", what, a)
			}
		}
		(<-call(t.Context(), w, p.Once(name), j)).want(t, "", holdfast.ErrClosed)
		world.WantErr(t, p.Once(name).Forget(t.Context(), key), holdfast.ErrClosed)
		if j.runs.Load() != 1 {
			t.Errorf("%d runs", j.runs.Load())
		}
	})
}

func TestArgumentsRefused(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		var none *once.Once
		for what, o := range map[string]*once.Once{
			"nil":                 none,
			"not made by New":     {},
			"no name":             p.Once(""),
			"a reserved name":     p.Once("holdfast_x"),
			"no time":             p.Once(name, once.Keep(0)),
			"negative time":       p.Once(name, once.KeepErrors(-1)),
			"another Busy":        p.Once(name, once.OnBusy(7)),
			"a negative size":     p.Once(name, once.MaxSize(-1)),
			"no codec":            p.Once(name, once.UseCodec(nil)),
			"too short a lease":   p.Once(name, once.Lease(holdfast.Renewed(1))),
			"a Client that is no": holdfast.New(nil).Once(name),
		} {
			_, err := once.Value(t.Context(), o, key, (&job{}).do)
			world.WantErr(t, err, holdfast.ErrBadArgument)
			if what != "too short a lease" {
				world.WantErr(t, o.Forget(t.Context(), key), holdfast.ErrBadArgument)
			}
			if t.Failed() {
				t.Fatal(what)
			}
		}
		world.WantErr(t, once.Do(t.Context(), p.Once(name), "", nil), holdfast.ErrBadArgument)
		if p.Runs("") != 0 {
			t.Error("something was sent")
		}
	})
}

func TestErrorTexts(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := once.Value(t.Context(), p.Once(name), key, func(context.Context) (int, error) {
			_, err := once.Value(ctx, p.Once(name), key, (&job{}).do)
			return 0, err
		})
		want := `holdfast: run once "charge:order 7": held by another: context deadline exceeded`
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		err = w.Processes[0].Once(name, once.MaxSize(0)).Forget(t.Context(), "")
		if want := `holdfast: forget once "charge:": the key is empty: bad argument`; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	})
}

// A call that finds the result is no failure in a trace, and acquires nothing.
func TestSpans(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		spans := tracetest.NewSpanRecorder()
		p := w.Process(holdfast.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))))
		j := &job{}
		for range 2 {
			(<-call(t.Context(), w, p.Once(name), j)).want(t, "result 1")
		}
		var got []string
		for _, span := range spans.Ended() {
			outcome := ""
			for _, a := range span.Attributes() {
				if a.Key == "holdfast.outcome" {
					outcome = a.Value.AsString()
				}
			}
			if span.Status().Code == codes.Error {
				t.Errorf("%s: %v", span.Name(), span.Status())
			}
			got = append(got, outcome)
		}
		if want := "[acquired released concluded]"; fmt.Sprint(got) != want {
			t.Errorf("outcomes %v, want %s", got, want)
		}
	})
}
