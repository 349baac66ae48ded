// Error texts have one prefix, one line, the name once, and nothing of Redis's own bookkeeping.

package repo

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

func TestErrorTextsHaveOnePrefixOneLineAndTheNameOnce(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		held := w.Lock(t.Context(), q.MyLock)
		defer w.Release(held)
		w.Mini.Set("typed", "somebody else's")
		defer w.Mini.Del("typed")
		ended := w.Lock(t.Context(), p.Mutex("ended"))
		gone := ended.Context(t.Context())
		w.Release(ended)
		forced := w.Lock(t.Context(), p.Mutex("forced"))
		redistest.Must(t, redistest.Err(q.Mutex("forced").ForceRelease(t.Context())))
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()

		refused := func(_ *holdfast.Lease, err error) error { return err }
		for _, tc := range []struct {
			what string
			err  error
			name string
			says string
		}{
			{"busy", refused(p.MyLock.TryLock(t.Context())), world.Name, "held by another"},
			{"a wait that ended", refused(p.MyLock.Lock(short)), world.Name, "held by another: context deadline exceeded"},
			{"a fair wait that ended", refused(p.FairMutex(world.Name).Lock(short)), world.Name, "context deadline exceeded"},
			{"another type", refused(p.Mutex("typed").TryLock(t.Context())), "typed", "string"},
			{"another type, of a semaphore", p.Semaphore("typed").TryAcquire(t.Context(), 1), "typed", "string"},
			{"another type, of a latch", p.Latch("typed").Wait(t.Context()), "typed", "string"},
			{"an ended lease's context", refused(p.Mutex("ended").Lock(gone)), "ended", "released"},
			{"released twice", ended.Release(t.Context()), "ended", "released"},
			{"released after its loss", forced.Release(t.Context()), "forced", "lost"},
			{"too few replicas", refused(p.Mutex("copied", holdfast.Replicas(1)).TryLock(t.Context())), "copied", "0"},
			{"never set", p.Semaphore("unset").TryAcquire(t.Context(), 1), "unset", "never"},
			{"permits never set", func() error {
				_, err := p.PermitSemaphore("unset").TryAcquire(t.Context(), 1)
				return err
			}(), "unset", "permits"},
			{"one of several", func() error {
				_, err := holdfast.NewMultiLock(p.Mutex("free"), p.MyLock).TryLock(t.Context())
				return err
			}(), world.Name, "held by another"},
		} {
			if tc.err == nil {
				t.Errorf("%s: no error", tc.what)
				continue
			}
			text := tc.err.Error()
			if !strings.HasPrefix(text, "holdfast: ") || strings.Count(text, "holdfast:") != 1 {
				t.Errorf("%s: not one prefix: %s", tc.what, text)
			}
			if strings.Contains(text, "\n") {
				t.Errorf("%s: several lines: %s", tc.what, text)
			}
			world.Equal(t, strings.Count(text, `"`+tc.name+`"`), 1, "the name is there %d times: %s (%s)", text, tc.what)
			if strings.Contains(text, "user_script") || !strings.Contains(text, tc.says) {
				t.Errorf("%s: want %q, and nothing of scripts: %s", tc.what, tc.says, text)
			}
		}
	})
}
