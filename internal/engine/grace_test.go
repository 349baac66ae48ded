// Releases that are bounded alike share a bound, and no bound is longer than was asked for.

package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestReleasesShareABoundThatIsNeverLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Engine{}
		defer e.graces.close()
		within := func(ctx context.Context, left time.Duration) {
			t.Helper()
			until, bounded := ctx.Deadline()
			if got := time.Until(until); !bounded || got > left || got <= left-shared {
				t.Errorf("bounded %v, for %v more, when %v were asked for", bounded, got, left)
			}
		}
		whole, shorter := e.Grace(), e.GraceUntil(time.Now().Add(2*time.Second))
		within(whole, Grace)
		within(shorter, 2*time.Second)

		time.Sleep(shared - time.Millisecond)
		if e.Grace() != whole {
			t.Error("a release has a bound of its own")
		}
		if e.GraceUntil(time.Now().Add(2*time.Second)) != shorter {
			t.Error("a release of a hold that ends sooner has a bound of its own")
		}
		within(e.Grace(), Grace)

		time.Sleep(time.Millisecond)
		if e.Grace() == whole {
			t.Errorf("a bound is shared for more than %v", shared)
		}
		for _, left := range []time.Duration{2 * time.Second, 1900 * time.Millisecond, 3 * time.Second, time.Second} {
			within(e.GraceUntil(time.Now().Add(left)), left)
		}
		within(e.Grace(), Grace)

		time.Sleep(Grace)
		if whole.Err() == nil || shorter.Err() == nil {
			t.Error("a bound has not ended")
		}
	})
}
