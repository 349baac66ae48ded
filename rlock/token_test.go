// This file is about tokens after a server's clock was far ahead.

package rlock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// Redis keeps a token that is ahead of the clock until the clock has reached it. So the next token
// is greater, even if nobody locks for days after the clock was set right.
func TestTokensGrowAfterAClockThatWasAhead(t *testing.T) {
	const day = 24 * time.Hour
	for kind, of := range map[string]func(*world.Process) holdfast.Locker{
		"mutex":     func(p *world.Process) holdfast.Locker { return p.MyLock },
		"fairmutex": func(p *world.Process) holdfast.Locker { return p.FairMutex(world.Name) },
		"rwlock":    func(p *world.Process) holdfast.Locker { return p.RWMutex(world.Name) },
	} {
		t.Run(kind, func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				locker := of(w.Process())
				start, last := time.Now(), int64(0)
				for i, at := range []time.Duration{30 * day, 0, 8 * day, 28 * day, 34 * day} {
					if i > 1 {
						time.Sleep(at - time.Since(start))
					}
					w.Mini.SetTime(start.Add(at)) // a month ahead, and then set right
					l, err := locker.Lock(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if l.Token() <= last {
						t.Errorf("on day %d: token %d after %d", at/day, l.Token(), last)
					}
					last = l.Token()
					w.Release(l)
				}
				// Redis keeps the token while it is ahead, and then for its usual life, but no
				// longer.
				if ttl := w.PTTL(world.TokenKey); ttl > 8*day {
					t.Errorf("it is kept for %v", ttl)
				}
			})
		})
	}
}
