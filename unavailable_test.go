// This file is about a Redis that cannot be reached: calls that do not wait end by themselves, and
// errors say why.

package holdfast_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
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

// tooMany is what a server says at its limit of connections.
const tooMany = "ERR max number of clients reached"

// full runs test in virtual time, with a Client behind a proxy, and returns the lines of the
// Client's log that have tooMany. A server that is full sends that and closes the connection.
func full(t *testing.T, test func(t *testing.T, c *holdfast.Client, server *redistest.MiniServer, proxy *redistest.FaultProxy)) (lines []string) {
	redistest.Bubble(t, func(t *testing.T) {
		server := redistest.Mini(t)
		proxy := server.Proxy()
		var log bytes.Buffer
		c := holdfast.New(proxy.Client(t), holdfast.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		test(t, c, server, proxy)
		c.Close() // the log is complete then
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, tooMany) {
				lines = append(lines, line)
			}
		}
	})
	return lines
}

func TestACallSaysThatTheServerHasTooManyClients(t *testing.T) {
	log := full(t, func(t *testing.T, c *holdfast.Client, _ *redistest.MiniServer, proxy *redistest.FaultProxy) {
		proxy.Receive(redistest.Full)
		for name, call := range map[string]func(context.Context) error{
			"Lock":    func(ctx context.Context) error { _, err := c.Mutex("m").Lock(ctx); return err },
			"TryLock": func(ctx context.Context) error { _, err := c.Mutex("m").TryLock(ctx); return err },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			err := call(ctx)
			if !errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrBusy) || !strings.Contains(err.Error(), tooMany) {
				t.Errorf("%s: %v, want what matches ErrUnavailable and has the server's words", name, err)
			}
		}
		if _, err := c.Check(t.Context()); err == nil || !strings.Contains(err.Error(), tooMany) {
			t.Errorf("Check: %v, want the server's words", err)
		}
	})
	if len(log) != 1 {
		t.Errorf("the log has %q, want one line for this outage", log)
	}
}

// A waiter needs no subscription to be granted the lock: it asks as well. So only the log says why
// it waits for longer than it would have to.
func TestTheLogSaysThatASubscriptionWasRefusedAsTheServerHasTooManyClients(t *testing.T) {
	log := full(t, func(t *testing.T, c *holdfast.Client, server *redistest.MiniServer, proxy *redistest.FaultProxy) {
		other := holdfast.New(server.Client())
		defer other.Close()
		held, err := other.Mutex("m").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Mutex("m").TryLock(t.Context()); !errors.Is(err, holdfast.ErrBusy) {
			t.Fatal(err)
		}
		proxy.Receive(redistest.Full) // the connection for calls is there by now
		time.AfterFunc(5*time.Second, func() { _ = held.Release(context.Background()) })
		begun := time.Now()
		l, err := c.Mutex("m").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < 5*time.Second || took > 6250*time.Millisecond {
			t.Errorf("granted after %v, want when the waiter next asks", took)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if len(log) != 1 || !strings.Contains(log[0], "pubsub: connection lost") {
		t.Errorf("the log has %q, want one line of the subscription", log)
	}
}
