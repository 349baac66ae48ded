// Package redises is where tests of locks on several servers play: several independent Redises on
// virtual time, and processes that have a Client for each of them. Only tests import it.
package redises

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// Name is the lock that most tests use. The other constants name its neighbours in Redis.
const (
	Name      = "orders"
	TokenKey  = "redisson_lock_token:{orders}"
	MarkerKey = "holdfast_quorum"
)

// World is several servers in a synctest bubble.
type World struct {
	T         *testing.T
	Servers   []*redistest.MiniServer
	RDBs      []*redis.Client // clients of the test itself
	start     time.Time
	Processes []*Process
}

// Process has a Client for each server, each behind a network of its own.
type Process struct {
	Nets    []*redistest.FaultProxy
	Clients []*holdfast.Client
}

// Play runs scene with n servers. When every process has closed, the servers may have only tokens
// and markers left, and no channel.
func Play(t *testing.T, n int, scene func(t *testing.T, w *World)) {
	t.Helper()
	redistest.Bubble(t, func(t *testing.T) {
		w := &World{T: t, start: time.Now()}
		for range n {
			server := redistest.Mini(t)
			w.Servers = append(w.Servers, server)
			w.RDBs = append(w.RDBs, server.Client())
		}
		scene(t, w)
		for _, p := range w.Processes {
			for i, c := range p.Clients {
				p.Plug(i)
				c.Close()
			}
		}
		for _, rdb := range w.RDBs {
			redistest.LeftBehind(t, rdb, world.AllTokens, MarkerKey)
		}
	})
}

// Process starts a process.
func (w *World) Process(options ...holdfast.Option) *Process {
	w.T.Helper()
	return w.ProcessAt(func(i int) string { return fmt.Sprintf("server%d:6379", i) }, options...)
}

// ProcessAt does what Process does, but gives the servers those addresses.
func (w *World) ProcessAt(address func(int) string, options ...holdfast.Option) *Process {
	w.T.Helper()
	p := new(Process)
	for i, server := range w.Servers {
		net := server.Proxy()
		rdb := net.Client(w.T, func(o *redis.Options) { o.Addr = address(i) })
		c := holdfast.New(rdb, options...)
		w.T.Cleanup(func() { c.Close() })
		p.Nets, p.Clients = append(p.Nets, net), append(p.Clients, c)
	}
	w.Processes = append(w.Processes, p)
	return p
}

// Unplug cuts the process off from a server. Plug ends that.
func (p *Process) Unplug(i int) {
	p.Nets[i].Refuse(true)
	p.Nets[i].Cut()
}

// Plug ends what Unplug began.
func (p *Process) Plug(i int) { p.Nets[i].Refuse(false) }

// ShutDown begins a Shutdown of every Client of the process. The channel carries what they return.
func (p *Process) ShutDown(ctx context.Context) <-chan error {
	done := make(chan error, len(p.Clients))
	for _, c := range p.Clients {
		go func() { done <- c.Shutdown(ctx) }()
	}
	synctest.Wait()
	return done
}

// Now returns the time since the beginning.
func (w *World) Now() time.Duration { return time.Since(w.start) }

// HeldOn returns the number of servers on which the lock called Name is held.
func (w *World) HeldOn() int {
	n := 0
	for _, s := range w.Servers {
		if s.Exists(Name) {
			n++
		}
	}
	return n
}

// WantHeldOn fails the test unless, within a second, the lock is held on exactly this many servers.
func (w *World) WantHeldOn(want int) {
	w.T.Helper()
	redistest.Eventually(w.T, time.Second, "held", func() error {
		if n := w.HeldOn(); n != want {
			return fmt.Errorf("held on %d servers, want %d", n, want)
		}
		return nil
	})
}

// RestartEmpty does what a restart without data does to a server.
func (w *World) RestartEmpty(i int) { w.Servers[i].FlushAll() }

// Lock locks one lock.
func (w *World) Lock(m holdfast.Locker) *holdfast.Lease { return Locked(w, w.T.Context(), m.Lock) }

// Locked calls lock with ctx, and fails the test if it fails.
func Locked[L any](w *World, ctx context.Context, lock func(context.Context) (L, error)) L {
	w.T.Helper()
	l, err := lock(ctx)
	if err != nil {
		w.T.Fatalf("at %v: %v", w.Now(), err)
	}
	return l
}
