// Rueidislock takes part over rueidis.

package peer

import (
	"context"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// openRueidislock opens rueidislock as it is by default, or tuned for a single server of Redis
// 7.0.5 or newer. By default each lock is three keys, and a holder must get two of them.
func openRueidislock(tuned bool) func(string) (Process, error) {
	return func(addr string) (Process, error) {
		options := rueidislock.LockerOption{ClientOption: rueidis.ClientOption{InitAddress: []string{addr}}}
		if tuned {
			options.KeyMajority = 1
			options.NoLoopTracking = true
		}
		locker, err := rueidislock.NewLocker(options)
		if err != nil {
			return nil, err
		}
		return rueidislockProcess{locker}, nil
	}
}

type rueidislockProcess struct{ locker rueidislock.Locker }

func (p rueidislockProcess) Close() { p.locker.Close() }

func (p rueidislockProcess) Lock(name string) Lock { return rueidisLock{p.locker, name} }

type rueidisLock struct {
	locker rueidislock.Locker
	name   string
}

func (l rueidisLock) Pair(ctx context.Context, work func()) error {
	_, release, err := l.locker.WithContext(ctx, l.name)
	if err != nil {
		return err
	}
	if work != nil {
		work()
	}
	release()
	return nil
}
