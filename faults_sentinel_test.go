// A planned failover leaves the former master running, for about ten seconds as a
// master.

package holdfast_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A Client that was connected before the failover, and one that came after it, lock
// on the same master, though the former one would still grant.
func TestAPlannedFailoverIsFollowed(t *testing.T) {
	t.Parallel()
	s := redistest.Sentinel(t)
	idle, busy := openClient(t, s.Client(t)), openClient(t, s.Client(t))
	for _, c := range []*holdfast.Client{idle, busy} {
		giveBack(t, grab(t, c.Mutex("warm")))
	}
	s.Failover()
	told := time.Now()
	for time.Since(told) < 2*time.Second {
		giveBack(t, grab(t, busy.Mutex("warm")))
		time.Sleep(20 * time.Millisecond)
	}
	for _, early := range []*holdfast.Client{idle, busy} {
		late := openClient(t, s.Client(t))
		l := grab(t, early.Mutex("split"))
		if _, err := late.Mutex("split").TryLock(t.Context()); !errors.Is(err, holdfast.ErrBusy) {
			t.Errorf("a new Client's TryLock of what an old one holds: %v", err)
		}
		giveBack(t, l)
	}
}
