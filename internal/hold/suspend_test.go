// A suspended machine and a wall clock that was set look alike from inside the process; only Redis
// knows the difference.

package hold_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// asleep runs scene with a lease on "a" that has just been granted. It runs in real time, because virtual time has only
// one clock.
func asleep(t *testing.T, option holdfast.LeaseOption, scene func(t *testing.T, server *redistest.MiniServer, proxy *redistest.FaultProxy, l *holdfast.Lease)) {
	t.Parallel()
	server := redistest.Mini(t)
	proxy := server.Proxy()
	c := holdfast.New(proxy.Client(t))
	defer func() { _ = c.Close() }()
	l, err := c.Mutex("a", option).Lock(t.Context())
	redistest.Must(t, err)
	scene(t, server, proxy, l)
}

// asEach runs scene for a renewed and for a fixed lease. length is long, so that delays on a busy
// machine are far from the bounds of the test.
func asEach(t *testing.T, scene func(t *testing.T, server *redistest.MiniServer, proxy *redistest.FaultProxy, l *holdfast.Lease)) {
	for name, option := range map[string]holdfast.LeaseOption{
		"renewed": holdfast.Renewed(length), "fixed": holdfast.Fixed(length),
	} {
		t.Run(name, func(t *testing.T) { asleep(t, option, scene) })
	}
}

// lostWithin waits for the loss, and returns how long it took. It fails the test if the loss does
// not come within half of the lease.
func lostWithin(t *testing.T, l *holdfast.Lease) time.Duration {
	t.Helper()
	begin := time.Now()
	select {
	case <-l.Done():
	case <-time.After(length / 2):
	}
	if err := l.Err(); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("after %v: %v, want a loss", time.Since(begin), err)
	}
	return time.Since(begin)
}

const (
	length = 24 * time.Second
	nap    = time.Hour
)

func TestAWallClockThatWasSetEndsNoLeaseThatRedisHas(t *testing.T) {
	asEach(t, func(t *testing.T, _ *redistest.MiniServer, proxy *redistest.FaultProxy, l *holdfast.Lease) {
		// A reply comes long after a try would end that had no time, and long before the sixth of the lease is over.
		proxy.OnCommand(func(redistest.Command) redistest.Fault { return redistest.DelayReply(500 * time.Millisecond) })
		(*hold.Lease)(l).WallClockRanOn(nap)
		select {
		case <-l.Done():
			t.Errorf("the lease ended: %v", l.Err())
		case <-time.After(time.Second):
		}
		_ = l.Release(t.Context())
	})
}

func TestALeaseThatRanOutWhileTheMachineSleptIsLostWhenItWakes(t *testing.T) {
	asEach(t, func(t *testing.T, server *redistest.MiniServer, _ *redistest.FaultProxy, l *holdfast.Lease) {
		server.Del("a")
		(*hold.Lease)(l).WallClockRanOn(nap)
		// The first regular renewal would come after a third of the lease.
		if took := lostWithin(t, l); took > length/4 {
			t.Errorf("it was lost after %v", took)
		}
	})
}

// The answer to a renewal that was under way when the machine went to sleep says nothing of the time since, and does not
// give Redis another sixth.
func TestAnAnswerFromBeforeTheSleepVouchesForNothing(t *testing.T) {
	asleep(t, holdfast.Renewed(length), func(t *testing.T, _ *redistest.MiniServer, proxy *redistest.FaultProxy, l *holdfast.Lease) {
		proxy.Refuse(true)
		proxy.Cut()
		answer := (*hold.Lease)(l).WallClockRanOnDuringARenewal(nap)
		time.Sleep(time.Millisecond)
		if !answer() {
			t.Error("Redis has more time to vouch for it")
		}
	})
}

func TestAMachineThatWakesWithoutRedisLosesItsLeasesAfterASixth(t *testing.T) {
	asEach(t, func(t *testing.T, _ *redistest.MiniServer, proxy *redistest.FaultProxy, l *holdfast.Lease) {
		proxy.Refuse(true)
		proxy.Cut()
		(*hold.Lease)(l).WallClockRanOn(nap)
		if took := lostWithin(t, l); took < length/6-100*time.Millisecond {
			t.Errorf("it was lost after %v: Redis had no sixth of the lease to be reached again", took)
		}
	})
}
