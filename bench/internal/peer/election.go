// Elections, behind the interface of locks: a candidate campaigns, leads while it works, and resigns.

package peer

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/leader"
)

// Term is the lease of all elections: the shortest that etcd's server grants by default.
const Term = 2 * time.Second

func electHoldfast(_ context.Context, addr string) (Process, error) {
	client, closeAll := NewClient(addr)
	return holdfastElections{client, closeAll}, nil
}

type holdfastElections struct {
	client *holdfast.Client
	close  func()
}

func (p holdfastElections) Close() { p.close() }

func (p holdfastElections) Lock(name string) Lock {
	return candidate{p.client.Leader(name, leader.Lease(Term))}
}

type candidate struct{ *leader.Election }

// Pair resigns for good, by the nil that its work returns.
func (c candidate) Pair(ctx context.Context, work func()) error {
	return c.Run(ctx, func(context.Context, *leader.Term) error {
		work()
		return nil
	})
}

// Client-go's elections have, by default, a lease of 15 s, and try to get it and to renew it each 2 s;
// who waits adds up to 1.2 times that at random. Here the pauses are as long in proportion to the lease.
const (
	tryLeading = Term * 2 / 15
	tryJitter  = 1.2
)

func electRedsync(_ context.Context, addr string) (Process, error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	return redsyncElections{&redsyncProcess{rdb, redsync.New(goredis.NewPool(rdb)), []redsync.Option{
		redsync.WithExpiry(Term),
		redsync.WithTries(math.MaxInt),
		redsync.WithRetryDelayFunc(func(int) time.Duration {
			return tryLeading + time.Duration(rand.Float64()*tryJitter*float64(tryLeading))
		}),
	}}}, nil
}

type redsyncElections struct{ *redsyncProcess }

func (p redsyncElections) Lock(name string) Lock {
	return keptLock{p.redsyncProcess.Lock(name).(redsyncLock)}
}

// keptLock is a lock that is extended while its work goes on.
type keptLock struct{ redsyncLock }

// Pair implements Lock.
func (l keptLock) Pair(ctx context.Context, work func()) error {
	return l.redsyncLock.Pair(ctx, func() {
		keeping, stop := context.WithCancel(ctx)
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			for every := time.Tick(tryLeading); ; {
				select {
				case <-every:
					_, _ = l.mutex.ExtendContext(keeping) // the next one comes soon
				case <-keeping.Done():
					return
				}
			}
		}()
		work()
		stop()
		<-stopped
	})
}
