// These tests show what callers of one key get, on virtual time: who does the work, who gets its result, what becomes of that
// on its way through the Codec, and what it costs Redis.

package once_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
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
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/once"
)

// Work is done once in the time of Keep, for callers of all processes, and forgotten then.
func TestValue_IsDoneOnce(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		j := &job{lasts: time.Second}
		for _, process := range []*world.Process{p, p, q} {
			(<-call(t.Context(), w, process.Once(name, once.Keep(time.Minute)), j)).wantAt(t, time.Second, "result 1")
		}
		w.At(time.Minute + 999*time.Millisecond)
		gets(t, w, q.Once(name), j, "result 1")
		w.At(time.Minute + time.Second + time.Millisecond)
		gets(t, w, q.Once(name), j, "result 2")
		world.Equal(t, w.PTTL(record), once.DefaultKeep, "by default a result is kept for %v")
		if w.Mini.Exists("holdfast_once_token:{charge:order 7}") {
			t.Error("a result that is kept for a day has its token beside it")
		}
	})
}

// A thousand callers in each of three processes cost two requests for each process that waits, and
// two for the one that works: to be granted it, and to write its result.
func TestValue_AThousandCallers(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, _, _ *world.Process) {
		j := &job{lasts: 500 * time.Millisecond}
		w.Process()
		var wait sync.WaitGroup
		var wrong atomic.Int32
		for _, p := range w.Processes {
			for range 1000 {
				wait.Go(func() {
					if value, err := once.Value(t.Context(), p.Once(name), key, j.do); value != "result 1" || err != nil {
						wrong.Add(1)
					}
				})
			}
		}
		wait.Wait()
		if j.ran(t, 1); wrong.Load() > 0 || w.Now() != j.lasts {
			t.Errorf("%d wrong answers; the last had its answer at %v", wrong.Load(), w.Now())
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
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		large := strings.Repeat("x", 16<<10+1)
		work := func(context.Context) (string, error) { time.Sleep(time.Second); return large, nil }
		first, second := value(t.Context(), w, p.Once(name), work), value(t.Context(), w, q.Once(name), work)
		for _, a := range []answer{<-first, <-second} {
			if a.value != large || a.err != nil || a.at != time.Second {
				t.Errorf("%d bytes, %v, at %v", len(a.value), a.err, a.at)
			}
		}
		world.Equal(t, q.Runs(""), 3, "the process that waited sent %d requests")
	})
}

// Nothing depends on a message, and one about other work than that which is under way says nothing.
func TestValue_StaleMessage(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		j := &job{lasts: 10 * time.Second}
		first, second := call(t.Context(), w, p.Once(name), j), call(t.Context(), w, q.Once(name), j)
		w.At(time.Second)
		for _, message := range []string{"7 result stale", "0", "", "7", "result", "7 error stale", " result stale"} {
			w.Mini.Publish(channel, message)
			synctest.Wait()
		}
		if len(second) > 0 {
			t.Fatalf("a message was believed: %+v", <-second)
		}
		q.Mute()
		defer q.Unmute()
		(<-first).want(t, "result 1")
		world.Within(t, "the answer without a message", (<-second).want(t, "result 1").at, 10*time.Second, 11250*time.Millisecond)
	})
}

func TestValue_ErrorsAreKeptIfAsked(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		bad := errors.New("no money")
		j := &job{lasts: time.Second, err: bad}
		first := call(t.Context(), w, p.Once(name, once.KeepErrors(time.Minute)), j)
		others := []<-chan answer{call(t.Context(), w, p.Once(name), j), call(t.Context(), w, q.Once(name), j)}
		if a := <-first; a.err != bad {
			t.Errorf("%v is not the very error", a.err)
		}
		for _, other := range append(others, call(t.Context(), w, q.Once(name), j)) {
			if a := (<-other).want(t, "", holdfast.ErrWorkFailed); a.err == nil || !strings.HasSuffix(a.err.Error(), "no money") {
				t.Errorf("%v", a.err)
			}
		}
		j.ran(t, 1)
		w.At(61*time.Second + time.Millisecond)
		j.err = nil
		gets(t, w, q.Once(name), j, "result 2")
	})
}

// An error that only says that the caller has left is not kept.
func TestValue_ErrorsOfAnEndedContextAreNotKept(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, _ *world.Process) {
		o := p.Once(name, once.KeepErrors(time.Minute))
		ctx := redistest.Within(t, time.Second)
		j := &job{lasts: time.Minute}
		(<-call(ctx, w, o, j)).want(t, "", context.DeadlineExceeded)
		j.lasts = 0
		gets(t, w, o, j, "result 2")
	})
}

// If the caller that works leaves, the next one does its own work, at once. A caller that waits and
// leaves disturbs nobody.
func TestValue_CancelledCallers(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		j := &job{lasts: 10 * time.Second}
		worker, leave := context.WithCancelCause(t.Context())
		impatient := redistest.Within(t, 2*time.Second)
		first := call(worker, w, p.Once(name), j)
		behind, second := call(impatient, w, p.Once(name), j), call(t.Context(), w, p.Once(name), j)
		elsewhere := call(impatient, w, q.Once(name), j)
		for _, c := range []<-chan answer{behind, elsewhere} {
			(<-c).wantAt(t, 2*time.Second, "", holdfast.ErrBusy, context.DeadlineExceeded)
		}
		if j.ran(t, 1); len(first)+len(second) > 0 {
			t.Fatal("others are disturbed")
		}
		w.At(3 * time.Second)
		why := errors.New("gone home")
		leave(why)
		(<-first).want(t, "", why)
		(<-second).wantAt(t, 13*time.Second, "result 2")
	})
}

func TestValue_PanicAndGoexit(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, _ *world.Process) {
		o := p.Once(name)
		for what, end := range map[string]func(){"panic": func() { panic("oh") }, "Goexit": runtime.Goexit} {
			ended := make(chan any)
			ctx := redistest.Within(t, time.Minute)
			var next <-chan answer
			go func() {
				defer func() { ended <- recover() }()
				_ = once.Do(t.Context(), o, key, func(context.Context) error {
					next = call(ctx, w, o, &job{})
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
			redistest.Check(t, o.Forget(t.Context(), key))
		}
	})
}

// A call with another payload is refused at once, while the work is under way and when it is done, and so is one that
// does not wait. A call without a payload fits.
func TestValue_Mismatch(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		mine, theirs := once.Fingerprint([]byte("10 EUR")), once.Fingerprint([]byte("20 EUR"))
		j := &job{lasts: time.Second}
		first := call(t.Context(), w, p.Once(name, mine), j)
		for _, process := range []*world.Process{p, q} {
			(<-call(t.Context(), w, process.Once(name, theirs), j)).wantAt(t, 0, "", holdfast.ErrMismatch)
			(<-call(t.Context(), w, process.Once(name, once.OnBusy(once.Fail)), j)).wantAt(t, 0, "", holdfast.ErrBusy)
		}
		fits, unsaid := call(t.Context(), w, p.Once(name, mine), j), call(t.Context(), w, p.Once(name), j)
		for _, c := range []<-chan answer{first, fits, unsaid} {
			(<-c).want(t, "result 1")
		}
		for _, process := range []*world.Process{p, q} {
			gets(t, w, process.Once(name, theirs), j, "", holdfast.ErrMismatch)
			gets(t, w, process.Once(name, mine), j, "result 1")
			gets(t, w, process.Once(name), j, "result 1")
		}
		j.ran(t, 1)
	})
}

// While Redis has told nobody that somebody is at work, a caller that shares another's question is not told so
// either: its error is that of the one that asks.
func TestValue_OutOfReachIsNotBusy(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		j := &job{lasts: time.Second}
		p.Unplug(true)
		ctx := redistest.Within(t, 3*time.Second)
		asks, joins := call(ctx, w, p.Once(name), j), call(ctx, w, p.Once(name), j)
		for _, c := range []<-chan answer{asks, joins} {
			a := <-c
			if world.WantErr(t, a.err, holdfast.ErrUnavailable); errors.Is(a.err, holdfast.ErrBusy) {
				t.Errorf("nobody is at work: %v", a.err)
			}
		}
		p.Unplug(false)
		time.Sleep(5 * time.Second)
		first := call(t.Context(), w, q.Once(name), j)
		short := redistest.Within(t, 500*time.Millisecond)
		asks, joins = call(short, w, p.Once(name), j), call(short, w, p.Once(name), j)
		for _, c := range []<-chan answer{asks, joins} {
			err := (<-c).err
			world.WantErr(t, err, holdfast.ErrBusy, context.DeadlineExceeded)
			if !strings.HasPrefix(fmt.Sprint(err), `holdfast: run once "charge:order 7": held by another`) {
				t.Error(err)
			}
		}
		<-first
	})
}

func TestValue_TooLargeAResult(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, _ *world.Process) {
		j := &job{}
		a := (<-call(t.Context(), w, p.Once(name, once.MaxSize(7), once.KeepErrors(time.Minute)), j)).want(t, "result 1", holdfast.ErrTooLarge)
		if a.err == nil || !strings.Contains(a.err.Error(), "8 bytes, at most 7") || w.Mini.Exists(record) {
			t.Errorf("%v, or something was written", a.err)
		}
		gets(t, w, p.Once(name, once.MaxSize(8)), j, "result 2")
	})
}

// Work has a token that grows. Work that asks for its own key would wait for itself; it may ask for another.
func TestValue_OfTheWorkItself(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, _ *world.Process) {
		last := once.Token(t.Context())
		if last != 0 {
			t.Error("a token outside of work")
		}
		for range 3 {
			err := once.Do(t.Context(), p.Once(name), key, func(ctx context.Context) error {
				inner, cancel := context.WithCancel(ctx)
				defer cancel()
				if token := once.Token(inner); token <= last {
					t.Errorf("token %d after %d", token, last)
				}
				last = once.Token(inner)
				redistest.Check(t, redistest.Err(once.Value(ctx, p.Once("another"), key, (&job{}).do)))
				return once.Do(ctx, p.Once(name), key, func(context.Context) error { return nil })
			})
			world.WantErr(t, err, holdfast.ErrBadArgument)
		}
	})
}

// A call that begins after Forget never gets what was forgotten, also if an earlier call of the
// process is about to get it.
func TestForget_DoesNotShareWhatWasForgotten(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		j := &job{lasts: time.Second}
		first, slow := call(t.Context(), w, q.Once(name), j), call(t.Context(), w, p.Once(name), j)
		p.Mute() // the message with the result is on its way to the one that waits
		(<-first).want(t, "result 1")
		must(t, p.Once(name).Forget(t.Context(), key))
		fresh := call(t.Context(), w, p.Once(name), j)
		p.Unmute()
		(<-slow).want(t, "result 1")
		(<-fresh).want(t, "result 2")
	})
}

// Close ends the calls of those that work, wait, or share what another of their process waits for.
func TestClose(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		j := &job{lasts: time.Minute}
		var all []<-chan answer
		for _, process := range []*world.Process{p, p, q, q} {
			all = append(all, call(t.Context(), w, process.Once(name), j))
		}
		q.Close()
		p.Close()
		for _, c := range append(all, call(t.Context(), w, p.Once(name), j)) {
			(<-c).wantAt(t, 0, "", holdfast.ErrClosed)
		}
		world.WantErr(t, p.Once(name).Forget(t.Context(), key), holdfast.ErrClosed)
		j.ran(t, 1)
	})
}

func TestArgumentsRefused(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, _ *world.Process) {
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
			world.WantErr(t, redistest.Err(once.Value(t.Context(), o, key, (&job{}).do)), holdfast.ErrBadArgument)
			world.WantErr(t, o.Forget(t.Context(), key), holdfast.ErrBadArgument)
			if t.Failed() {
				t.Fatal(what)
			}
		}
		world.WantErr(t, once.Do(t.Context(), p.Once(name), "", func(context.Context) error { return nil }), holdfast.ErrBadArgument)
		world.WantErr(t, once.Do(t.Context(), p.Once(name), key, nil), holdfast.ErrBadArgument)
		world.WantErr(t, redistest.Err(once.Value[string](t.Context(), p.Once(name), key, nil)), holdfast.ErrBadArgument)
		if p.Runs("") != 0 {
			t.Error("something was sent")
		}
	})
}

// A call that finds the result is no failure in a trace, and acquires nothing.
func TestSpans(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, _, _ *world.Process) {
		spans := tracetest.NewSpanRecorder()
		p := w.Process(holdfast.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))))
		j := &job{}
		for range 2 {
			gets(t, w, p.Once(name), j, "result 1")
		}
		var got []string
		for _, span := range spans.Ended() {
			for _, a := range span.Attributes() {
				if a.Key == "holdfast.outcome" {
					got = append(got, a.Value.AsString())
				}
			}
			if span.Status().Code == codes.Error {
				t.Errorf("%s: %v", span.Name(), span.Status())
			}
		}
		if want := "[acquired released concluded]"; fmt.Sprint(got) != want {
			t.Errorf("outcomes %v, want %s", got, want)
		}
	})
}

type receipt struct {
	ID    int               `json:"id"`
	Lines map[string]string `json:"lines,omitempty"`
}

// roundTrip has one process do the work, and another get its result.
func roundTrip[T any](t *testing.T, w *world.World, key, stored string, value T, options ...once.Option) {
	t.Helper()
	for i, p := range append(w.Processes, w.Processes...) {
		got, err := once.Value(t.Context(), p.Once("codec", options...), key, func(context.Context) (T, error) {
			if i > 0 {
				t.Errorf("%s: done again", key)
			}
			return value, nil
		})
		if err != nil || !reflect.DeepEqual(got, value) {
			t.Errorf("%s: %v, %v, want %v", key, got, err, value)
		}
		if data, ok := any(got).([]byte); ok && i > 0 {
			clear(data) // it is the caller's own
		}
	}
	if got := w.RDB.HGet(t.Context(), "holdfast_once:{codec:"+key+"}", "result").Val(); got != stored {
		t.Errorf("%s is stored as %q, want %q", key, got, stored)
	}
}

func TestCodec(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, _, _ *world.Process) {
		roundTrip(t, w, "struct", `{"id":7,"lines":{"a":"b"}}`, receipt{7, map[string]string{"a": "b"}})
		roundTrip(t, w, "pointer", `{"id":7}`, &receipt{ID: 7})
		roundTrip(t, w, "nil pointer", `null`, (*receipt)(nil))
		roundTrip(t, w, "number", `42`, 42)
		roundTrip(t, w, "string", "a \r\n\x00 \xff", "a \r\n\x00 \xff")
		roundTrip(t, w, "no string", "", "")
		roundTrip(t, w, "bytes", "\x00\xff", []byte{0, 255})
		roundTrip(t, w, "no bytes", "", []byte{})
		roundTrip(t, w, "raw", `{"a": 1}`, json.RawMessage(`{"a": 1}`), once.UseCodec(rawCodec{}))
	})
}

// Of an interface type every other caller gets what JSON makes of the result, whatever that is.
func TestCodec_AnInterfaceType(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		for i, result := range []any{
			"hello", "123", "true", "null", "", []byte("[1,2]"), []byte("x"), 7, 1.5, nil, map[string]any{"a": 1.0},
		} {
			of := fmt.Sprint(i)
			first, err := once.Value(t.Context(), p.Once(name), of, func(context.Context) (any, error) { return result, nil })
			if !reflect.DeepEqual(first, result) || err != nil {
				t.Errorf("%T %v: the first got %T %v, %v", result, result, first, first, err)
			}
			var want any
			text, err := json.Marshal(result)
			if err != nil || json.Unmarshal(text, &want) != nil {
				t.Fatal(err)
			}
			for _, process := range []*world.Process{p, q} {
				got, err := once.Value(t.Context(), process.Once(name), of, func(context.Context) (any, error) { return "again", nil })
				if !reflect.DeepEqual(got, want) || err != nil {
					t.Errorf("%T %v: another got %T %v, %v, want %T %v", result, result, got, got, err, want, want)
				}
			}
		}
		roundTrip(t, w, "a string in any", `"hello"`, any("hello"))
		roundTrip(t, w, "a Stringer", `null`, fmt.Stringer(nil))
	})
}

// rawCodec is a Codec of a program.
type rawCodec struct{}

func (rawCodec) Encode(v any) ([]byte, error) { return v.(json.RawMessage), nil }

func (rawCodec) Decode(data []byte, v any) error {
	*v.(*json.RawMessage) = append(json.RawMessage{}, data...)
	return nil
}

func TestCodec_Fails(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, _ *world.Process) {
		value, err := once.Value(t.Context(), p.Once(name), key, func(context.Context) (func(), error) { return func() {}, nil })
		var unsupported *json.UnsupportedTypeError
		if value == nil || !errors.As(err, &unsupported) || !strings.HasPrefix(err.Error(), `holdfast: encode once "charge:order 7": `) {
			t.Errorf("%v", err)
		}
		if w.Mini.Exists(record) {
			t.Error("something was written")
		}
		must(t, once.Do(t.Context(), p.Once(name), key, func(context.Context) error { return nil }))
		_, err = once.Value(t.Context(), p.Once(name), key, func(context.Context) (int, error) { return 1, nil })
		if err == nil || !strings.HasPrefix(err.Error(), `holdfast: decode once "charge:order 7": `) {
			t.Errorf("%v", err)
		}
	})
}

// The caller gets the very error. Others, who wait in the same process and in another one, do their own work.
func TestValue_ErrorsAreNotKept(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		bad := errors.New("no money")
		failing, working := &job{lasts: time.Second, err: bad}, &job{lasts: time.Second}
		first := call(t.Context(), w, p.Once(name), failing)
		second, third := call(t.Context(), w, p.Once(name), failing), call(t.Context(), w, q.Once(name), working)
		if a := <-first; a.err != bad || a.at != time.Second {
			t.Errorf("%v at %v is not the very error", a.err, a.at)
		}
		b, c := <-second, <-third
		if runs := failing.runs.Load() + working.runs.Load(); b.err == nil && runs != 2 || b.err != nil && runs != 3 {
			t.Errorf("%d runs: %+v, %+v", runs, b, c)
		}
		if c.want(t, "result 1"); c.at > 3*time.Second {
			t.Errorf("the last waited until %v", c.at)
		}
	})
}
