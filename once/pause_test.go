// A caller that meets a pause waits for its end or gets an error that names it. Other callers do not.

package once_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/once"
)

// playPaused is play while the name is paused, for an hour.
func playPaused(t *testing.T, scene func(t *testing.T, w *world.World, p *world.Process)) {
	t.Helper()
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		must(t, q.Pause(t.Context(), name, holdfast.Until(time.Now().Add(time.Hour))))
		scene(t, w, p)
		must(t, q.Resume(t.Context(), name))
		time.Sleep(time.Minute) // what a pause leaves behind goes
	})
}

// One caller of a process asks for all. Each gets an error that names the pause, and why its own ctx has ended.
func TestPausable_CallersOfOneProcess(t *testing.T) {
	playPaused(t, func(t *testing.T, w *world.World, p *world.Process) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, holdfast.ErrResigned)
		defer cancel()
		end, o, j := w.Now()+time.Minute, p.Once(name, once.Pausable()), &job{}
		a, b := call(ctx, w, o, j), call(ctx, w, o, j)
		plain := <-call(ctx, w, p.Once(name), j) // it does not heed the pause, nor wait for those that do
		plain.want(t, "result 1")
		(<-a).wantAt(t, end, "", holdfast.ErrPaused, holdfast.ErrResigned)
		(<-b).wantAt(t, end, "", holdfast.ErrPaused, holdfast.ErrResigned)
		j.ran(t, 1)
	})
}

// What was granted is given back, and nobody waits for that longer than ctx says.
func TestPausable_TheReleaseIsNotAnswered(t *testing.T) {
	playPaused(t, func(t *testing.T, w *world.World, p *world.Process) {
		p.Each(func(s world.Sending) redistest.Fault {
			if s.Script == world.OnceReleaseRun {
				return redistest.Silence
			}
			return redistest.Pass
		})
		ctx := redistest.Within(t, time.Second)
		end := w.Now() + time.Second
		(<-call(ctx, w, p.Once(name, once.Pausable()), &job{})).wantAt(t, end, "", holdfast.ErrPaused, context.DeadlineExceeded)
		p.Each(nil)
	})
}

// A look without an answer does not keep a caller that does not wait. A caller that waits gets ErrLost if its hold is lost meanwhile.
func TestPausable_TheLookIsNotAnswered(t *testing.T) {
	for busy, want := range map[once.Busy]error{once.Fail: holdfast.ErrUnavailable, once.Wait: holdfast.ErrLost} {
		play(t, func(t *testing.T, w *world.World, p, _ *world.Process) {
			p.Each(func(s world.Sending) redistest.Fault {
				if s.Script == world.OnceAskRun {
					return redistest.Pass
				}
				return redistest.Silence
			})
			j := &job{}
			a := <-call(t.Context(), w, p.Once(name, once.Pausable(), once.OnBusy(busy)), j)
			a.want(t, "", want)
			if busy == once.Fail && a.at > 10*time.Second {
				t.Errorf("returned after %v", a.at)
			}
			j.ran(t, 0)
			p.Each(nil)
		})
	}
}
