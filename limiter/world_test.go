// What tests of limits add to the world of all tests.

package limiter_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/limiter"
)

const limitKey = "holdfast_limit:{api}"

// ten is ten a second, five at once.
func ten(p *world.Process, more ...limiter.Option) *limiter.Limiter {
	return p.Limiter("api", append([]limiter.Option{limiter.Rate(10, time.Second), limiter.Burst(5)}, more...)...)
}

// play is world.Play with two processes. At the end every limit goes, so that whatever else is left shows.
func play(t *testing.T, scene func(t *testing.T, w *world.World, p, q *world.Process)) {
	t.Helper()
	world.Play(t, func(t *testing.T, w *world.World) {
		scene(t, w, w.Process(), w.Process())
		for _, p := range w.Processes {
			p.Close()
		}
		for _, k := range w.Mini.Keys() {
			if ttl := w.Mini.TTL(k); ttl <= 0 && strings.HasPrefix(k, "holdfast_limit") {
				t.Errorf("%s stands without an expiry", k)
			}
			if strings.HasPrefix(k, "holdfast_limit") || strings.Contains(k, ":concurrent") {
				w.Mini.Del(k)
			}
		}
	})
}

// faults are what may become of a request, by what that is.
var faults = map[string]redistest.Fault{
	"reply lost": redistest.CloseAfterExec, "request lost": redistest.DropBefore, "half a reply": redistest.HalfReply,
	"sent twice": redistest.Duplicate, "silence": redistest.Silence, "late": redistest.Delay(900 * time.Millisecond),
}

// allow fails the test unless n units are allowed, or not, and so many remain.
func allow(t *testing.T, l *limiter.Limiter, n int, allowed bool, remaining int) limiter.Decision {
	t.Helper()
	d, err := l.Allow(t.Context(), n)
	if err != nil || d.Allowed != allowed || d.Remaining != remaining {
		t.Errorf("%d units: %+v, %v; want %v, and %d that remain", n, d, err, allowed, remaining)
	}
	return d
}

// waiting is a call of Wait under way.
type waiting struct {
	done chan struct{}
	err  error
	at   time.Duration
}

// wait calls Wait on a goroutine of its own, and returns when it sleeps or is done.
func wait(ctx context.Context, w *world.World, l *limiter.Limiter, n int) *waiting {
	a := &waiting{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.err = l.Wait(ctx, n)
		a.at = w.Now()
	}()
	time.Sleep(time.Millisecond)
	synctest.Wait()
	return a
}

// wantAt fails the test unless the wait ends at that time, with an error that matches the targets.
func (a *waiting) wantAt(t *testing.T, at time.Duration, targets ...error) {
	t.Helper()
	select {
	case <-a.done:
	case <-time.After(time.Hour):
		t.Error("it has waited for an hour")
		return
	}
	if d := a.at - at; d < 0 || d > 3*time.Millisecond || a.err != nil && len(targets) == 0 {
		t.Errorf("waited until %v: %v; want until %v", a.at, a.err, at)
	}
	world.WantErr(t, a.err, targets...)
}

// drained takes all that there is at once.
func drained(t *testing.T, l *limiter.Limiter) {
	t.Helper()
	allow(t, l, 5, true, 0)
}
