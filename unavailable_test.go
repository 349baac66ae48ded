// This file is about a Redis that cannot be reached: calls that do not wait end by themselves, and
// errors say why.

package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// unreachable runs test in virtual time, with a Client behind a proxy.
func unreachable(t *testing.T, test func(t *testing.T, c *holdfast.Client, server *redistest.MiniServer, proxy *redistest.FaultProxy)) {
	redistest.Bubble(t, func(t *testing.T) {
		server := redistest.Mini(t)
		proxy := server.Proxy()
		c := holdfast.New(proxy.Client(t))
		defer c.Close()
		test(t, c, server, proxy)
	})
}

func TestATryEndsByItselfWhereRedisCannotBeReached(t *testing.T) {
	for name, fault := range map[string]func(*redistest.FaultProxy){
		"nothing listens": func(p *redistest.FaultProxy) { p.Refuse(true) },
		"silence": func(p *redistest.FaultProxy) {
			p.OnCommand(func(redistest.Command) redistest.Fault { return redistest.Silence })
		},
	} {
		t.Run(name, func(t *testing.T) {
			unreachable(t, func(t *testing.T, c *holdfast.Client, _ *redistest.MiniServer, proxy *redistest.FaultProxy) {
				fault(proxy)
				background := context.Background()
				locking := func(l holdfast.Locker) func() error {
					return func() error { _, err := l.TryLock(background); return err }
				}
				for kind, try := range map[string]func() error{
					"Mutex":           locking(c.Mutex("m")),
					"FairMutex":       locking(c.FairMutex("f")),
					"RWMutex":         locking(c.RWMutex("rw")),
					"RWMutex, reader": locking(c.RWMutex("rw").RLocker()),
					"PermitSemaphore": locking(c.PermitSemaphore("p").Locker(1)),
					"Semaphore":       func() error { return c.Semaphore("s").TryAcquire(background, 1) },
					"TrySetPermits":   func() error { _, err := c.Semaphore("s").TrySetPermits(background, 1); return err },
					"TrySetCount":     func() error { _, err := c.Latch("l").TrySetCount(background, 1); return err },
				} {
					begun := time.Now()
					err := try()
					if !errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrBusy) {
						t.Errorf("%s: %v, want what matches ErrUnavailable", kind, err)
					}
					if took := time.Since(begun); took != 3*time.Second {
						t.Errorf("%s ended after %v, want 3s", kind, took)
					}
				}
			})
		})
	}
}

func TestTheErrorOfAWaitSaysWhetherRedisCouldBeReached(t *testing.T) {
	for _, tc := range []struct {
		name              string
		held, down        bool
		cancelled         bool
		unavailable, busy bool
	}{
		{name: "held by another", held: true, busy: true},
		{name: "no Redis", down: true, unavailable: true},
		{name: "held by another, and then no Redis", held: true, down: true, unavailable: true, busy: true},
		{name: "no Redis, and cancelled", down: true, cancelled: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			unreachable(t, func(t *testing.T, c *holdfast.Client, server *redistest.MiniServer, proxy *redistest.FaultProxy) {
				if tc.held {
					other := holdfast.New(server.Client())
					defer other.Close()
					l, err := other.Mutex("m").Lock(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					defer l.Release(context.Background())
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				if tc.down && !tc.held {
					proxy.Refuse(true)
				}
				time.AfterFunc(5*time.Second, func() {
					if tc.down {
						proxy.Refuse(true)
						proxy.Cut()
					}
					if tc.cancelled {
						cancel()
					}
				})
				_, err := c.Mutex("m").Lock(ctx)
				for _, is := range []struct {
					sentinel error
					want     bool
				}{
					{holdfast.ErrUnavailable, tc.unavailable},
					{holdfast.ErrBusy, tc.busy},
					{context.DeadlineExceeded, !tc.cancelled},
					{context.Canceled, tc.cancelled},
				} {
					if errors.Is(err, is.sentinel) != is.want {
						t.Errorf("%v matches %v: %v, want %v", err, is.sentinel, !is.want, is.want)
					}
				}
			})
		})
	}
}
