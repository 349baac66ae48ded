// What tests of a Once add to the world of all tests: work that counts its runs, and what each caller got.

package once_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/once"
)

const (
	name = "charge"
	key  = "order 7"

	record  = "holdfast_once:{charge:order 7}"
	channel = "holdfast_once_channel:{charge:order 7}"
)

// play is world.Play with two processes. At the end every record goes, so that whatever else is left shows.
func play(t *testing.T, scene func(t *testing.T, w *world.World, p, q *world.Process)) {
	t.Helper()
	world.Play(t, func(t *testing.T, w *world.World) {
		scene(t, w, w.Process(), w.Process())
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

// ran fails the test unless the work ran that often.
func (j *job) ran(t *testing.T, want int32) {
	t.Helper()
	world.Equal(t, j.runs.Load(), want, "%d runs, want %d", want)
}

// answer is what one call returned.
type answer struct {
	value string
	err   error
	at    time.Duration
}

// call calls Value on a goroutine of its own, and returns when it works, waits or is done. The answer
// comes on the channel.
func call(ctx context.Context, w *world.World, o *once.Once, j *job) <-chan answer {
	return value(ctx, w, o, j.do)
}

func value(ctx context.Context, w *world.World, o *once.Once, work func(context.Context) (string, error)) <-chan answer {
	c := make(chan answer, 1)
	go func() {
		value, err := once.Value(ctx, o, key, work)
		c <- answer{value, err, w.Now()}
	}()
	synctest.Wait()
	return c
}

// gets fails the test unless a call gets that.
func gets(t *testing.T, w *world.World, o *once.Once, j *job, value string, targets ...error) {
	t.Helper()
	(<-call(t.Context(), w, o, j)).want(t, value, targets...)
}

// want fails the test unless the answer has that value, and matches those errors.
func (a answer) want(t *testing.T, value string, targets ...error) answer {
	t.Helper()
	if a.value != value || a.err != nil && len(targets) == 0 {
		t.Errorf("got %q, %v, want %q", a.value, a.err, value)
	}
	world.WantErr(t, a.err, targets...)
	return a
}

// wantAt is want, at that time.
func (a answer) wantAt(t *testing.T, at time.Duration, value string, targets ...error) {
	t.Helper()
	if a.want(t, value, targets...); a.at != at {
		t.Errorf("returned at %v, want %v", a.at, at)
	}
}

// must ends the test on an error.
func must(t *testing.T, err error) { t.Helper(); redistest.Must(t, err) }
