package rwlock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/rwlock"
)

// The tokens of writers grow even where time stands still, and where the data are lost.
func TestTokens(t *testing.T) {
	play(t, func(w *rwWorld) {
		a, b := w.process(), w.process()
		var last int64
		for i := range 20 { // all grants are in one microsecond
			if i == 10 {
				w.At(time.Millisecond) // after this no token is ahead of the clock
				w.RDB.FlushAll(w.Context())
			}
			for _, m := range []*rwlock.RWMutex{a, b} {
				l := w.got(m.Lock(w.Context()))
				if l.Token() <= last {
					t.Errorf("token %d after %d", l.Token(), last)
				}
				last = l.Token()
				w.Release(l)
			}
		}
	})
}
