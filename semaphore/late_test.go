// An acquisition that is sent twice, of which the first sending arrives last.

package semaphore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

func TestALateAcquisitionDoesNotShortenALeaseThatWasExtended(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		s := p.PermitSemaphore("s", holdfast.Fixed(30*time.Second))
		if ok, err := s.TrySetPermits(t.Context(), 1); !ok || err != nil {
			t.Fatal(err)
		}
		first, err := s.Acquire(t.Context(), 1) // warm
		redistest.Must(t, err)
		w.Release(first)
		begin := w.Now()
		n := 0
		p.Net.OnCommand(func(c redistest.Command) redistest.Fault {
			if c.Name == "EVALSHA" || c.Name == "EVAL" {
				if n++; n == 1 {
					return redistest.Delay(500 * time.Millisecond)
				}
			}
			return redistest.Pass
		})
		a := w.Try(func() (*lease.Lease, error) { return s.Acquire(t.Context(), 1) })
		synctest.Wait()
		p.HangUp() // the connection breaks; what was sent still arrives
		l, err := a.Result()
		redistest.Must(t, err)
		redistest.Must(t, l.Extend(t.Context(), 10*time.Minute))
		w.At(begin + 35*time.Second)
		other, err := q.PermitSemaphore("s").TryAcquire(t.Context(), 1)
		if err == nil {
			t.Errorf("two hold the only permit: the first has %v to go, Err %v", time.Until(l.Deadline()), l.Err())
			w.Release(other)
		}
		_ = l.Release(t.Context())
		w.Mini.FlushAll()
	})
}
