// Tokens after a server's clock was far ahead.

package holdfast_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A token that is ahead of the clock is kept until the clock is there: nobody locks for
// days after the clock was set right, and the next token is greater all the same.
func TestTokensGrowAfterAClockThatWasAhead(t *testing.T) {
	const day = 24 * time.Hour
	for kind, of := range map[string]func(*process) holdfast.Locker{
		"mutex":     func(p *process) holdfast.Locker { return p.mutex },
		"fairmutex": func(p *process) holdfast.Locker { return p.FairMutex(name) },
		"rwlock":    func(p *process) holdfast.Locker { return p.RWMutex(name) },
	} {
		t.Run(kind, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				locker := of(w.process())
				w.mini.SetTime(time.Now().Add(30 * day))
				last := int64(0)
				for i, later := range []time.Duration{0, 0, 8 * day, 20 * day, 6 * day} {
					if i == 1 {
						w.mini.SetTime(time.Time{}) // the clock is set right
					}
					time.Sleep(later)
					l, err := locker.Lock(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if l.Token() <= last {
						t.Errorf("%v later: token %d after %d", later, l.Token(), last)
					}
					last = l.Token()
					w.release(l)
				}
				// As long as it is ahead, and then for its life, but no longer.
				if ttl := w.pttl(tokenKey); ttl > 8*day {
					t.Errorf("it is kept for %v", ttl)
				}
			})
		})
	}
}
