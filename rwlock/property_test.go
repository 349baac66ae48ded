// This file checks random sequences of calls, by several processes, against a plain model.

package rwlock_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/rapidtest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/rwlock"
)

// modelHold is one owner's hold of one side.
type modelHold struct {
	write  bool
	owner  lease.Owner
	leases []*lease.Lease
	of     *rwlock.RWMutex // the RWMutex of its process
}

// model is what the lock should be.
type model struct {
	holds []*modelHold
}

func (m *model) writer() *modelHold {
	for _, h := range m.holds {
		if h.write {
			return h
		}
	}
	return nil
}

func (m *model) drop(h *modelHold) {
	for i, other := range m.holds {
		if other == h {
			m.holds = append(m.holds[:i:i], m.holds[i+1:]...)
		}
	}
}

const modelLease = 10 * time.Second

func TestAgainstAModel(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		mini := redistest.Mini(t)
		rdb := mini.Client()
		defer rdb.Close()
		var sides []*rwlock.RWMutex
		for range 3 {
			conn := mini.Client()
			defer conn.Close()
			c := holdfast.New(conn)
			defer c.Close()
			sides = append(sides, c.RWMutex(name, holdfast.Renewed(modelLease)))
		}
		rapidtest.Check(t, func(rt *rapid.T) {
			rdb.FlushAll(t.Context())
			m := &model{}
			rt.Repeat(map[string]func(*rapid.T){
				"write":    func(rt *rapid.T) { m.try(rt, sides, true) },
				"read":     func(rt *rapid.T) { m.try(rt, sides, false) },
				"re-enter": func(rt *rapid.T) { m.reenter(rt) },
				"under":    func(rt *rapid.T) { m.under(rt) },
				"upgrade":  func(rt *rapid.T) { m.upgrade(rt) },
				"release":  func(rt *rapid.T) { m.release(rt) },
				"lose":     func(rt *rapid.T) { m.lose(rt, rdb) },
				"time": func(rt *rapid.T) {
					time.Sleep(time.Duration(rapid.IntRange(1, 60).Draw(rt, "ds")) * 100 * time.Millisecond)
				},
				"": func(rt *rapid.T) { m.check(rt, sides[0], rdb) },
			})
			for _, h := range m.holds {
				for _, l := range h.leases {
					_ = l.Release(t.Context())
				}
			}
		})
	})
}

func (m *model) try(rt *rapid.T, sides []*rwlock.RWMutex, write bool) {
	side := rapid.SampledFrom(sides).Draw(rt, "process")
	m.want(rt, side, write, context.Background(), m.writer() == nil && (!write || len(m.holds) == 0))
}

// want tries a side. The try must be granted exactly if granted is true, and the model keeps the
// hold.
func (m *model) want(rt *rapid.T, side *rwlock.RWMutex, write bool, ctx context.Context, granted bool) {
	f := side.TryRLock
	if write {
		f = side.TryLock
	}
	l, err := f(ctx)
	switch {
	case granted && err != nil:
		rt.Fatalf("write %v: %v, want it granted", write, err)
	case !granted && !errors.Is(err, holdfast.ErrBusy):
		rt.Fatalf("write %v: %v, want ErrBusy", write, err)
	case granted:
		m.holds = append(m.holds, &modelHold{write, l.Owner(), []*lease.Lease{l}, side})
	}
}

// pick draws a hold that want accepts. If there is none, it skips the call.
func (m *model) pick(rt *rapid.T, want func(*modelHold) bool) *modelHold {
	var some []*modelHold
	for _, h := range m.holds {
		if want == nil || want(h) {
			some = append(some, h)
		}
	}
	if len(some) == 0 {
		rt.Skip("no such hold")
	}
	return some[rapid.IntRange(0, len(some)-1).Draw(rt, "hold")]
}

func isReader(h *modelHold) bool { return !h.write }
func isWriter(h *modelHold) bool { return h.write }

// held returns a context that carries the hold.
func (h *modelHold) held() context.Context { return h.leases[0].Context(context.Background()) }

func (m *model) reenter(rt *rapid.T) {
	h := m.pick(rt, nil)
	f := h.of.TryRLock
	if h.write {
		f = h.of.TryLock
	}
	l, err := f(h.held())
	if err != nil || l.Owner() != h.owner {
		rt.Fatalf("re-entry: %v, %v", l, err)
	}
	h.leases = append(h.leases, l)
}

func (m *model) under(rt *rapid.T) {
	h := m.pick(rt, isWriter)
	m.want(rt, h.of, false, h.held(), true)
}

func (m *model) upgrade(rt *rapid.T) {
	h := m.pick(rt, isReader)
	if _, err := h.of.Lock(h.held()); !errors.Is(err, holdfast.ErrUpgrade) {
		rt.Fatalf("a reader asks for the write side: %v", err)
	}
}

// lose lets a reader's lease run out in Redis, while the reader's field stays.
func (m *model) lose(rt *rapid.T, rdb *redis.Client) {
	h := m.pick(rt, isReader)
	for i := range h.leases {
		rdb.Del(context.Background(), key(h.owner.String(), i+1))
	}
	m.drop(h)
}

func (m *model) release(rt *rapid.T) {
	h := m.pick(rt, nil)
	i := rapid.IntRange(0, len(h.leases)-1).Draw(rt, "lease")
	if err := h.leases[i].Release(context.Background()); err != nil && !errors.Is(err, holdfast.ErrLost) {
		rt.Fatal(err)
	}
	h.leases = append(h.leases[:i:i], h.leases[i+1:]...)
	if len(h.leases) == 0 {
		m.drop(h)
	}
}

func (m *model) check(rt *rapid.T, side *rwlock.RWMutex, rdb *redis.Client) {
	want, readers := "", 0
	fields := rdb.HGetAll(context.Background(), name).Val()
	for _, h := range m.holds {
		field := h.owner.String()
		if h.write {
			want, field = field, field+":write"
		} else {
			readers += len(h.leases)
		}
		if fields[field] != strconv.Itoa(len(h.leases)) {
			rt.Fatalf("%s has count %q; want %d", field, fields[field], len(h.leases))
		}
	}
	if holder, err := side.Holder(context.Background()); err != nil || holder.String() != want {
		rt.Fatalf("writer %q, %v, want %q", holder, err, want)
	}
	if n, err := side.ReadHolds(context.Background()); err != nil || n != readers {
		rt.Fatalf("%d read holds, %v; want %d", n, err, readers)
	}
}
