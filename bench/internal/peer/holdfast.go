// Holdfast's mutex takes part as it is by default, and with parts of it turned off.

package peer

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

// NewClient returns a Holdfast Client with connections of its own, and a function that closes both.
func NewClient(addr string, options ...holdfast.Option) (client *holdfast.Client, closeAll func()) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	client = holdfast.New(rdb, options...)
	return client, func() {
		client.Close()
		rdb.Close()
	}
}

// withoutCohort turns off the local hand-off, which passes a lock on to the next waiter of this
// process without a request to Redis.
func withoutCohort() holdfast.Option { return holdfast.WithDefaults(holdfast.Cohort(0, 0)) }

func openHoldfast(options ...holdfast.Option) func(string) (Process, error) {
	return func(addr string) (Process, error) {
		client, closeAll := NewClient(addr, options...)
		return &holdfastProcess{client, closeAll}, nil
	}
}

type holdfastProcess struct {
	client *holdfast.Client
	close  func()
}

func (p *holdfastProcess) Close() { p.close() }

func (p *holdfastProcess) Lock(name string) Lock { return Locker{p.client.Mutex(name)} }

// Locker is any lock of Holdfast.
type Locker struct{ holdfast.Locker }

// Pair implements Lock.
func (l Locker) Pair(ctx context.Context, work func()) error {
	lease, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	if work != nil {
		work()
	}
	return lease.Release(ctx)
}
