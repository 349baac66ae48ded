package fairlock_test

import (
	"testing"
	"time"
)

// The token grows even where time stands still, and where the data are lost.
func TestTokens(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		a, b := w.process(), w.process()
		var last int64
		for i := range 20 { // all grants are in one microsecond
			if i == 10 {
				w.At(time.Millisecond) // after this no token is ahead of the clock
				w.Mini.FlushAll()
			}
			for _, p := range []*process{a, b} {
				l := w.Lock(t.Context(), p)
				if l.Token() <= last {
					t.Errorf("token %d after %d", l.Token(), last)
				}
				last = l.Token()
				w.Release(l)
			}
		}
	})
}
