// Every kind on servers that allow less: one that refuses scripts that publish, as Alibaba's cluster does, where the Client
// publishes after the script; one that wants keys declared; and one where a user has the keys of one prefix only.

package holdfast_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// wait is how one Client waits for another.
type wait struct {
	kind string
	// hold makes the other wait until free is called.
	hold func(ctx context.Context, c *holdfast.Client) (free func(context.Context) error, err error)
	// wait waits, and gives up what it gets.
	wait func(ctx context.Context, c *holdfast.Client) error
}

// locking is the wait for a Locker that another holds; held and wanted may be two sides of one lock.
func locking(kind string, held, wanted func(c *holdfast.Client) holdfast.Locker) wait {
	return wait{
		kind: kind,
		hold: func(ctx context.Context, c *holdfast.Client) (func(context.Context) error, error) {
			l, err := held(c).Lock(ctx)
			if err != nil {
				return nil, err
			}
			return l.Release, nil
		},
		wait: func(ctx context.Context, c *holdfast.Client) error {
			l, err := wanted(c).Lock(ctx)
			if err != nil {
				return err
			}
			return l.Release(ctx)
		},
	}
}

// waits has one wait or more of each kind.
func waits() []wait {
	mutex := func(c *holdfast.Client) holdfast.Locker { return c.Mutex("m") }
	fair := func(c *holdfast.Client) holdfast.Locker { return c.FairMutex("f") }
	stripe := func(c *holdfast.Client) holdfast.Locker { return c.Striped("s", 4).For("key") }
	write := func(c *holdfast.Client) holdfast.Locker { return c.RWMutex("rw") }
	read := func(c *holdfast.Client) holdfast.Locker { return c.RWMutex("rw").RLocker() }
	permits := func(c *holdfast.Client) holdfast.Locker { return c.PermitSemaphore("p").Locker(2) }
	leased := locking("permits", permits, permits)
	holdPermits := leased.hold
	leased.hold = func(ctx context.Context, c *holdfast.Client) (func(context.Context) error, error) {
		if _, err := c.PermitSemaphore("p").TrySetPermits(ctx, 3); err != nil {
			return nil, err
		}
		return holdPermits(ctx, c)
	}
	return []wait{
		locking("mutex", mutex, mutex),
		locking("fair mutex", fair, fair),
		locking("stripe", stripe, stripe),
		locking("write after write", write, write),
		locking("write after read", read, write),
		locking("read after write", write, read),
		leased,
		{
			kind: "semaphore",
			hold: func(ctx context.Context, c *holdfast.Client) (func(context.Context) error, error) {
				s := c.Semaphore("n")
				if _, err := s.TrySetPermits(ctx, 2); err != nil {
					return nil, err
				}
				return func(ctx context.Context) error { return s.Release(ctx, 1) }, s.Acquire(ctx, 1)
			},
			wait: func(ctx context.Context, c *holdfast.Client) error { return c.Semaphore("n").Acquire(ctx, 2) },
		},
		{
			kind: "latch",
			hold: func(ctx context.Context, c *holdfast.Client) (func(context.Context) error, error) {
				_, err := c.Latch("l").TrySetCount(ctx, 1)
				return func(ctx context.Context) error {
					_, err := c.Latch("l").CountDown(ctx)
					return err
				}, err
			},
			wait: func(ctx context.Context, c *holdfast.Client) error { return c.Latch("l").Wait(ctx) },
		},
	}
}

// play has one Client wait for the other, in virtual time. The other sends its commands through rule.
// It returns how long after the release the wait was over.
func (w wait) play(t *testing.T, how redistest.Strictness, rule func(redistest.Command) redistest.Fault) (took time.Duration) {
	redistest.Bubble(t, func(t *testing.T) {
		server := redistest.Mini(t)
		server.CheckScripts(how)
		proxy := server.Proxy()
		proxy.OnCommand(rule)
		took = w.between(t, clienttest.OpenClient(t, proxy.Client(t)), clienttest.OpenClient(t, server.Client()))
	})
	return took
}

// between has one Client wait for the other. It returns how long after the release the wait was over.
func (w wait) between(t *testing.T, holder, waiter *holdfast.Client) time.Duration {
	ctx := t.Context()
	free, err := w.hold(ctx, holder)
	must(t, err)
	var freed, over time.Time
	done := make(chan error, 1)
	go func() {
		err := w.wait(ctx, waiter)
		over = time.Now()
		done <- err
	}()
	time.Sleep(300 * time.Millisecond)
	select {
	case err := <-done:
		t.Fatalf("it does not wait: %v", err)
	default:
	}
	freed = time.Now()
	must(t, free(ctx))
	must(t, <-done)
	return over.Sub(freed)
}

// Where the message is lost, the next poll finds the release.
func TestAReleaseIsToldWhereScriptsMayNotPublish(t *testing.T) {
	for _, w := range waits() {
		t.Run(w.kind, func(t *testing.T) {
			published := 0
			took := w.play(t, redistest.NoPubSub, func(c redistest.Command) redistest.Fault {
				if c.Name == "PUBLISH" {
					published++
				}
				return redistest.Pass
			})
			if took > 5*time.Millisecond {
				t.Errorf("the waiter came %v after the release", took)
			}
			if published == 0 {
				t.Error("nothing was published")
			}
			took = w.play(t, redistest.NoPubSub, func(c redistest.Command) redistest.Fault {
				if c.Name == "PUBLISH" {
					return redistest.ReplyError("ERR lost")
				}
				return redistest.Pass
			})
			if took < 5*time.Millisecond || took > 1250*time.Millisecond {
				t.Errorf("the waiter came %v after the release whose message was lost, want the next poll", took)
			}
		})
	}
}

// Where keys must be declared too, all works but an RWMutex, which does not know the keys of readers beforehand.
func TestWhereKeysMustBeDeclared(t *testing.T) {
	for _, w := range waits() {
		t.Run(w.kind, func(t *testing.T) {
			if !strings.Contains(w.kind, "read") && !strings.Contains(w.kind, "write") {
				w.play(t, redistest.DeclaredKeys, func(redistest.Command) redistest.Fault { return redistest.Pass })
				return
			}
			redistest.Bubble(t, func(t *testing.T) {
				server := redistest.Mini(t)
				server.CheckScripts(redistest.DeclaredKeys)
				client := clienttest.OpenClient(t, server.Client())
				if _, err := w.hold(t.Context(), client); err == nil || !strings.Contains(err.Error(), redistest.RefusalOfScripts) {
					t.Errorf("error %v, want the server's", err)
				}
			})
		})
	}
}

// Under contention the lock is passed on within each process and between the two, as elsewhere.
func TestACrowdWhereScriptsMayNotPublish(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		const goroutines, rounds, grants = 20, 10, 2 * 20 * 10
		server := redistest.Mini(t)
		server.CheckScripts(redistest.NoPubSub)
		var inside atomic.Int64
		var all sync.WaitGroup
		ways := []*redistest.FaultProxy{server.Proxy(), server.Proxy()}
		for _, way := range ways {
			m := clienttest.OpenClient(t, way.Client(t)).Mutex("m")
			for range goroutines {
				all.Go(func() {
					last := int64(0)
					for range rounds {
						l := clienttest.Grab(t, m)
						if n := inside.Add(1); n != 1 || l.Token() <= last {
							t.Errorf("%d inside at once; token %d after %d", n, l.Token(), last)
						}
						last = l.Token()
						time.Sleep(100 * time.Microsecond)
						inside.Add(-1)
						clienttest.GiveBack(t, l)
					}
				})
			}
		}
		began := time.Now()
		all.Wait()
		// 100 us each, and nothing waits for a poll or for Java.
		if took, limit := time.Since(began), grants*150*time.Microsecond; took > limit {
			t.Errorf("took %v, want %v at most", took, limit)
		}
		sent := func(command string) int { return ways[0].Count(command) + ways[1].Count(command) }
		if n := sent("EVAL") + sent("EVALSHA"); n > grants || sent("PUBLISH") == 0 {
			t.Errorf("%d scripts for %d grants, and %d messages: the lock is not passed on within a process", n, grants, sent("PUBLISH"))
		}
	})
}

// A Client that closes right after a release has told it.
func TestTheLastReleaseBeforeCloseIsTold(t *testing.T) {
	w := waits()[0]
	hold := w.hold
	w.hold = func(ctx context.Context, c *holdfast.Client) (func(context.Context) error, error) {
		free, err := hold(ctx, c)
		return func(ctx context.Context) error { return errors.Join(free(ctx), c.Close()) }, err
	}
	took := w.play(t, redistest.NoPubSub, func(redistest.Command) redistest.Fault { return redistest.Pass })
	if took > 5*time.Millisecond {
		t.Errorf("the waiter came %v after the release", took)
	}
}

// The quiet forms run on a real server too. A proxy refuses the others.
func TestQuietScriptsOnARealServer(t *testing.T) {
	server := redistest.Server(t)
	for _, w := range waits() {
		t.Run(w.kind, func(t *testing.T) {
			var refused, published atomic.Int64
			client := func() *holdfast.Client {
				proxy := redistest.Proxy(t, server.Addr())
				proxy.OnCommand(func(c redistest.Command) redistest.Fault {
					switch {
					case c.Name == "EVAL" && strings.Contains(strings.ToLower(c.Args[0]), "publish"):
						refused.Add(1)
						return redistest.ReplyError(redistest.RefusalOfScripts + ", as the proxy says")
					case c.Name == "PUBLISH":
						published.Add(1)
					}
					return redistest.Pass
				})
				return clienttest.OpenClient(t, proxy.Client(t))
			}
			w.between(t, client(), client())
			if refused.Load() == 0 || published.Load() == 0 {
				t.Errorf("%d scripts refused, %d messages published", refused.Load(), published.Load())
			}
		})
	}
}

func TestAPrefixIsOfTheClient(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		server := redistest.Mini(t)
		c := clienttest.OpenClient(t, server.Client(), holdfast.WithKeyPrefix("app:"), holdfast.WithIdentity("me"))
		bare := clienttest.OpenClient(t, server.Client())
		for _, m := range []holdfast.Locker{
			c.Mutex("orders", holdfast.JavaTokens()), c.RWMutex("orders", holdfast.JavaTokens()),
			clienttest.OpenClient(t, server.Client(), holdfast.WithKeyPrefix("{app}:")).Mutex("orders"),
		} {
			if _, err := m.TryLock(t.Context()); !errors.Is(err, holdfast.ErrBadArgument) {
				t.Errorf("%v, want ErrBadArgument", err)
			}
		}
		l := clienttest.Grab(t, c.Mutex("orders"))
		time.Sleep(time.Minute) // it is renewed, and the Client says who it is
		if i, err := bare.Inspect(t.Context(), "app:orders"); err != nil || i.Kind != holdfast.KindMutex {
			t.Errorf("the lock is not at app:orders: %v, %v", i, err)
		}
		if i, err := bare.Inspect(t.Context(), "orders"); err != nil || i.Kind != holdfast.KindFree {
			t.Errorf("something is at orders: %v, %v", i, err)
		}
		clienttest.Grab(t, bare.Mutex("elsewhere"))
		var names []string
		for i, err := range c.InspectAll(t.Context(), "o*") {
			names = append(names, i.Name)
			if err != nil || len(i.Holders) != 1 || i.Holders[0].Who != "me" {
				t.Errorf("%v, %v", i, err)
			}
		}
		mapped := clienttest.OpenClient(t, server.Client(), holdfast.WithNameMapper(func(name string) string { return "app:" + name }))
		for _, looks := range []*holdfast.Client{bare, mapped} { // what is found is not mapped
			for i, err := range looks.InspectAll(t.Context(), "app:*") {
				names = append(names, i.Name)
				must(t, err)
			}
		}
		if want := []string{"orders", "app:orders", "app:orders"}; !reflect.DeepEqual(names, want) {
			t.Errorf("%q, want %q", names, want)
		}
		must(t, l.Release(t.Context()))
	})
}
