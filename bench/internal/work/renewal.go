// A hundred thousand locks are held and renewed; the workload measures what they weigh, and what
// their renewal costs here and costs others that share the server.

package work

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/bench/internal/peer"
	"github.com/holdfast-go/holdfast/lease"
)

// Renewal is the name of the workload. It has contenders beside Holdfast and redislock. In the
// contender redislock, a goroutine for each lock tells it when to refresh the lock. Refreshes: as many
// goroutines as redislock does best with refresh its locks without a pause. Extends: rueidislock keeps
// its locks automatically, as Holdfast does. Nothing holds no lock.
const (
	Renewal   = "renewal"
	Refreshes = "redislock, without a pause"
	Extends   = "rueidislock, as often"
	Nothing   = "nothing"
)

// These are the workload's own figures.
const (
	GoroutinesPerLock = "goroutinesPerLock"
	HeapPerLock       = "heapPerLock" // in bytes
)

func renewals() []Workload {
	return []Workload{{
		Name:       Renewal,
		Title:      "100 000 held and renewed locks",
		Processes:  2, // one process holds, the other sends PING
		Contenders: []string{peer.Holdfast, peer.Redislock, Refreshes, Extends, Nothing},
		// Each lock is renewed once in this window. Only a contender without a pause renews it more
		// often.
		Window: Window{Full: renewedEvery, Quick: renewedEvery, Rounds: measure.LeastRounds, Setup: 4 * time.Second},
		Idle:   true,
		Run: func(ctx context.Context, s *Site) error {
			if s.Process == 1 {
				return ping(ctx, s)
			}
			held := 100_000
			if s.Quick {
				held = 20_000
			}
			switch s.Contender {
			case peer.Holdfast:
				return holdRenewed(ctx, s, held)
			case peer.Redislock:
				return holdRefreshed(ctx, s, held)
			case Refreshes:
				return refresh(ctx, s, held)
			case Extends:
				return holdExtended(ctx, s, held)
			}
			s.Ready()
			<-ctx.Done()
			return nil
		},
	}}
}

// renewedEvery is a third of the lease.
const renewedEvery = lease.DefaultLease / 3

// redislockPool is the number of connections that suit redislock.
const redislockPool = 64

// holdRenewed makes Holdfast hold locks, which Holdfast renews automatically.
func holdRenewed(ctx context.Context, s *Site, held int) error {
	client, closeAll := peer.NewClient(s.Addr)
	defer closeAll()
	leases := make([]*holdfast.Lease, held)
	before := inUse()
	err := forAll(ctx, held, func(i int) (err error) {
		leases[i], err = client.Mutex(fmt.Sprintf("%s:%d", s.Name, i)).Lock(ctx)
		return err
	})
	if err != nil {
		return err
	}
	s.weigh(before, held)
	s.Ready()
	countRenewals(ctx, s.Meter.Worker(), held)
	for _, l := range leases {
		if err := l.Err(); err != nil {
			return fmt.Errorf("a lease was not kept: %w", err)
		}
	}
	return nil
}

// footprint is the number of goroutines and the heap of a process.
type footprint struct{ goroutines, heap int64 }

func inUse() footprint {
	return footprint{int64(runtime.NumGoroutine()), int64(measure.HeapInUse())}
}

// weigh reports how many goroutines and how much heap each of the locks adds.
func (s *Site) weigh(before footprint, locks int) {
	now := inUse()
	s.Meter.Set(HeapPerLock, float64(now.heap-before.heap)/float64(locks))
	s.Meter.Set(GoroutinesPerLock, float64(now.goroutines-before.goroutines)/float64(locks))
}

// countRenewals counts renewals by the clock: each lease is renewed once in each renewedEvery.
func countRenewals(ctx context.Context, worker *measure.Worker, held int) {
	tick := time.NewTicker(renewedEvery / 100)
	defer tick.Stop()
	began, counted := time.Now(), int64(0)
	for {
		select {
		case <-tick.C:
			due := int64(float64(held) * time.Since(began).Seconds() / renewedEvery.Seconds())
			worker.Did(due - counted)
			counted = due
		case <-ctx.Done():
			return
		}
	}
}

// holdRefreshed makes redislock hold locks. For each lock, a goroutine of its own refreshes it as
// often as Holdfast renews a lock: redislock leaves this to its users.
func holdRefreshed(ctx context.Context, s *Site, held int) error {
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, PoolSize: redislockPool})
	defer rdb.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	worker := s.Meter.Worker()
	keep := func(lock *redislock.Lock) {
		due := time.NewTimer(rand.N(renewedEvery)) // so that not all come at once
		defer due.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-due.C:
			}
			due.Reset(renewedEvery)
			if err := lock.Refresh(ctx, peer.LockLife, nil); err != nil {
				cancel(err) // does nothing if ctx has ended
				return
			}
			worker.Did(1)
		}
	}
	var all sync.WaitGroup
	defer all.Wait()
	client, before := redislock.New(rdb), inUse()
	err := forAll(ctx, held, func(i int) error {
		lock, err := client.Obtain(ctx, fmt.Sprintf("%s:%d", s.Name, i), peer.LockLife, nil)
		if err == nil {
			all.Go(func() { keep(lock) })
		}
		return err
	})
	if err != nil {
		return err
	}
	s.weigh(before, held)
	s.Ready()
	<-ctx.Done()
	if cause := context.Cause(ctx); cause != context.Canceled {
		return cause
	}
	return nil
}

// refresh makes redislock hold locks, and refreshes them one after the other until ctx ends. It
// uses as many goroutines as suit redislock.
func refresh(ctx context.Context, s *Site, held int) error {
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, PoolSize: redislockPool})
	defer rdb.Close()
	locks := make([]*redislock.Lock, held)
	client, before := redislock.New(rdb), inUse()
	err := forAll(ctx, held, func(i int) (err error) {
		locks[i], err = client.Obtain(ctx, fmt.Sprintf("%s:%d", s.Name, i), peer.LockLife, nil)
		return err
	})
	if err != nil {
		return err
	}
	s.weigh(before, held)
	var next atomic.Int64
	return s.Loop(ctx, redislockPool, func(int) Task {
		return func(ctx context.Context) (int64, error) {
			lock := locks[next.Add(1)%int64(held)]
			return 1, lock.Refresh(ctx, peer.LockLife, nil)
		}
	})
}

// holdExtended makes rueidislock hold locks, which it extends automatically, as long and as often as
// Holdfast.
func holdExtended(ctx context.Context, s *Site, held int) error {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{s.Addr}},
		KeyMajority:  1, NoLoopTracking: true, KeyValidity: lease.DefaultLease, ExtendInterval: renewedEvery,
	})
	if err != nil {
		return err
	}
	defer locker.Close()
	locks := make([]context.Context, held)
	before := inUse()
	err = forAll(ctx, held, func(i int) (err error) {
		// It tries, because it may wait for ever: WithContext does not return to some of its callers
		// where very many lock at once, though nobody else wants their locks. A try takes 20 ms at most.
		for ctx.Err() == nil {
			locks[i], _, err = locker.TryWithContext(context.WithoutCancel(ctx), fmt.Sprintf("%s:%d", s.Name, i))
			if err == nil {
				return nil
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	s.weigh(before, held)
	s.Ready()
	countRenewals(ctx, s.Meter.Worker(), held)
	for _, l := range locks {
		if err := l.Err(); err != nil {
			return fmt.Errorf("a lock was not kept: %w", err)
		}
	}
	return nil
}

// forAll calls do for each of 0 to n-1, some calls at a time, and returns the first error.
func forAll(ctx context.Context, n int, do func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for range 256 {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := do(int(i)); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// ping is another client of the same server. It sends a PING, and sends the next PING a millisecond
// after the reply.
func ping(ctx context.Context, s *Site) error {
	s.Meter.Bystander()
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer rdb.Close()
	return s.Loop(ctx, 1, func(int) Task {
		return func(ctx context.Context) (int64, error) {
			began := time.Now()
			err := rdb.Ping(ctx).Err()
			s.Meter.Took(time.Since(began))
			time.Sleep(time.Millisecond)
			return 0, err
		}
	})
}
