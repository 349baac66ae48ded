// Several independent Redises on virtual time, and processes that use them.

package multilock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/multilock"
)

const (
	name      = "orders"
	tokenKey  = "redisson_lock_token:{orders}"
	markerKey = "holdfast_quorum"
)

// redises are several servers in a synctest bubble.
type redises struct {
	t         *testing.T
	servers   []*redistest.MiniServer
	rdbs      []*redis.Client // clients of the test itself
	start     time.Time
	processes []*process
}

// process has a Client for each server, each behind a network of its own.
type process struct {
	nets    []*redistest.FaultProxy
	clients []*holdfast.Client
}

// play runs scene with n servers. When every process has closed, the servers may have only tokens
// and markers left, and no channel.
func play(t *testing.T, n int, scene func(t *testing.T, w *redises)) {
	t.Helper()
	redistest.Bubble(t, func(t *testing.T) {
		w := &redises{t: t, start: time.Now()}
		for range n {
			server := redistest.Mini(t)
			w.servers = append(w.servers, server)
			w.rdbs = append(w.rdbs, server.Client())
		}
		scene(t, w)
		for _, p := range w.processes {
			for i, c := range p.clients {
				p.plug(i)
				c.Close()
			}
		}
		for _, rdb := range w.rdbs {
			redistest.LeftBehind(t, rdb, world.AllTokens, markerKey)
		}
	})
}

func (w *redises) process(options ...holdfast.Option) *process {
	w.t.Helper()
	return w.processAt(func(i int) string { return fmt.Sprintf("server%d:6379", i) }, options...)
}

// processAt does what process does, but gives the servers those addresses.
func (w *redises) processAt(address func(int) string, options ...holdfast.Option) *process {
	w.t.Helper()
	p := new(process)
	for i, server := range w.servers {
		net := server.Proxy()
		rdb := net.Client(w.t, func(o *redis.Options) { o.Addr = address(i) })
		c := holdfast.New(rdb, options...)
		w.t.Cleanup(func() { c.Close() })
		p.nets, p.clients = append(p.nets, net), append(p.clients, c)
	}
	w.processes = append(w.processes, p)
	return p
}

// unplug cuts the process off from a server; plug ends that.
func (p *process) unplug(i int) {
	p.nets[i].Refuse(true)
	p.nets[i].Cut()
}

func (p *process) plug(i int) { p.nets[i].Refuse(false) }

func (w *redises) now() time.Duration { return time.Since(w.start) }

// heldOn returns the number of servers on which the lock of the quorum is held.
func (w *redises) heldOn() int {
	n := 0
	for _, s := range w.servers {
		if s.Exists(name) {
			n++
		}
	}
	return n
}

// wantHeldOn fails the test unless, within a second, the lock is held on exactly this many servers.
func (w *redises) wantHeldOn(want int) {
	w.t.Helper()
	redistest.Eventually(w.t, time.Second, "held", func() error {
		if n := w.heldOn(); n != want {
			return fmt.Errorf("held on %d servers, want %d", n, want)
		}
		return nil
	})
}

// grab locks one lock.
func (w *redises) grab(m holdfast.Locker) *holdfast.Lease {
	w.t.Helper()
	l, err := m.Lock(w.t.Context())
	if err != nil {
		w.t.Fatalf("at %v: %v", w.now(), err)
	}
	return l
}

// all locks several locks.
func (w *redises) all(m *multilock.MultiLock, ctx context.Context) *multilock.Lease {
	w.t.Helper()
	l, err := m.Lock(ctx)
	if err != nil {
		w.t.Fatalf("at %v: %v", w.now(), err)
	}
	return l
}

// restartEmpty does what a restart without data does to a server.
func (w *redises) restartEmpty(i int) { w.servers[i].FlushAll() }

// handle has what all leases have in common.
type handle interface {
	Context(context.Context) context.Context
	Done() <-chan struct{}
	Err() error
	Release(context.Context) error
}

func wantLive(t *testing.T, h handle, ctx context.Context) {
	t.Helper()
	select {
	case <-h.Done():
		t.Errorf("done: %v", h.Err())
	default:
	}
	if h.Err() != nil || ctx.Err() != nil {
		t.Errorf("ended: %v, context %v", h.Err(), context.Cause(ctx))
	}
}

// wantEnded fails the test unless every method of the lease says that the lease ended for this
// cause.
func wantEnded(t *testing.T, h handle, ctx context.Context, cause error) {
	t.Helper()
	select {
	case <-h.Done():
	default:
		t.Error("not done")
	}
	world.WantErr(t, h.Err(), cause)
	if ctx.Err() == nil {
		t.Error("the context lasts")
	}
	world.WantErr(t, context.Cause(ctx), cause)
}

func release(t *testing.T, all ...interface{ Release(context.Context) error }) {
	t.Helper()
	for _, l := range all {
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
