// What another client sees: how long the locks still live, and how soon the server answers.

package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// samples is how many of the locks are looked at.
const samples = 100

type watcher struct {
	addr   string
	holder holder
	seen   [samples]sample

	mu    sync.Mutex // guards what follows
	gap   time.Duration
	least time.Duration
	took  []time.Duration
}

// sample is one of the locks that are looked at.
type sample struct {
	ttl     time.Duration
	renewed time.Time
}

func newWatcher(addr string, h holder) *watcher {
	return &watcher{addr: addr, holder: h, least: h.Lease}
}

// sample looks at the locks, five times a second.
func (w *watcher) sample(ctx context.Context) {
	rdb := redis.NewClient(&redis.Options{Addr: w.addr})
	defer rdb.Close()
	for tick := time.Tick(200 * time.Millisecond); ; {
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
		replies := make([]*redis.DurationCmd, samples)
		_, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i := range replies {
				replies[i] = pipe.PTTL(ctx, heldName(i*(w.holder.Locks/samples)))
			}
			return nil
		})
		if err != nil {
			continue
		}
		w.mu.Lock()
		for i, reply := range replies {
			w.saw(&w.seen[i], reply.Val(), time.Now())
		}
		w.mu.Unlock()
	}
}

// saw takes in the time to live of one lock. A greater one than before shows a renewal.
func (w *watcher) saw(s *sample, ttl time.Duration, now time.Time) {
	switch {
	case ttl > s.ttl && !s.renewed.IsZero():
		w.gap = max(w.gap, now.Sub(s.renewed))
		fallthrough
	case ttl > s.ttl:
		s.renewed = now.Add(ttl - w.holder.Lease)
	case ttl < 0 && s.ttl > 0:
		w.gap = max(w.gap, now.Sub(s.renewed))
	}
	if s.ttl = ttl; !s.renewed.IsZero() {
		w.least = min(w.least, max(ttl, 0))
	}
}

// ping sends PING, and the next one a millisecond after the reply.
func (w *watcher) ping(ctx context.Context) {
	rdb := redis.NewClient(&redis.Options{Addr: w.addr})
	defer rdb.Close()
	for ctx.Err() == nil {
		began := time.Now()
		err := rdb.Ping(ctx).Err()
		if took := time.Since(began); err == nil {
			w.mu.Lock()
			w.took = append(w.took, took)
			w.mu.Unlock()
		}
		time.Sleep(time.Millisecond)
	}
}

// pings returns how long the PINGs since the last call took.
func (w *watcher) pings() (p50, p99 time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.took) == 0 {
		return 0, 0
	}
	slices.Sort(w.took)
	p50, p99 = w.took[len(w.took)/2], w.took[len(w.took)*99/100]
	w.took = w.took[:0]
	return p50, p99
}
