// What is known of how long the thing is held, and how long a waiter sleeps on it.

package line

import (
	"math/rand/v2"
	"time"
)

// Held is how long the thing is still held, as far as a waiter knows. The zero Held says that
// nothing is known: nobody has asked, or it may be free by now.
type Held struct{ left time.Duration } // negative: without a known end

// NoKnownEnd is the Held of what is held, but nobody knows for how long.
var NoKnownEnd = Held{-1}

// HeldFor returns the Held of what is held for no longer than left.
func HeldFor(left time.Duration) Held { return Held{max(left, 0)} }

// HeldByTTL returns the Held of a time to live as Redis gives it. A negative one has no end.
func HeldByTTL(ttl time.Duration) Held {
	if ttl < 0 {
		return NoKnownEnd
	}
	return Held{ttl}
}

// Left returns for how long the thing is held, unless no end is known.
func (h Held) Left() (left time.Duration, ends bool) { return max(h.left, 0), h.left >= 0 }

// outlasts reports whether the thing is held for longer than d.
func (h Held) outlasts(d time.Duration) bool { return h == NoKnownEnd || h.left > d }

// nap returns how long to sleep meanwhile: at most PollBound, less up to a random tenth of it so that processes spread
// out, and at least a millisecond, so that waiting does not become constant asking.
func (h Held) nap() time.Duration {
	poll := PollBound - rand.N(PollBound/10)
	if h.outlasts(poll) {
		return poll
	}
	return max(h.left, time.Millisecond)
}
