// This file is about what a lock looks like in Redis, and how it is entered again and released.

package rlock_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

func TestTheFirstLock(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		w.WantHolder(l.Owner(), 1)
		w.WantTTL(30 * time.Second)
		form := regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9]+$`)
		if id := l.Owner().String(); !form.MatchString(id) {
			t.Errorf("owner %q", id)
		}
		if kind := w.RDB.Type(t.Context(), world.Name).Val(); kind != "hash" {
			t.Errorf("type %s", kind)
		}
		nested := w.Lock(l.Context(t.Context()), p.MyLock)
		if n := w.RDB.HLen(t.Context(), world.Name).Val(); n != 1 {
			t.Errorf("HLEN %d", n)
		}
		w.Release(nested)
		w.Release(l)
		w.WantFree()
	})
}

func TestClientIDs(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		id := func(l *lease.Lease) (client, number string) {
			client, number, _ = strings.Cut(l.Owner().String(), ":")
			return client, number
		}
		p, q := w.Process(), w.Process()
		first := w.Lock(t.Context(), p.Mutex("a"))
		second := w.Lock(t.Context(), p.Mutex("b"))
		other := w.Lock(t.Context(), q.Mutex("c"))
		c1, n1 := id(first)
		c2, n2 := id(second)
		c3, _ := id(other)
		if len(c1) != 36 || c1 != c2 || n1 == n2 || c1 == c3 {
			t.Errorf("owners %v, %v and, of another Client, %v", first.Owner(), second.Owner(), other.Owner())
		}
		w.Release(first)
		w.Release(second)
		w.Release(other)
	})
}

func TestAPlainContextIsANewOwner(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		_, err := p.MyLock.TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		// For another name or another Client the lease in the context does not count.
		held := l.Context(t.Context())
		elsewhere := w.Lock(held, p.Mutex("elsewhere"))
		if elsewhere.Owner() == l.Owner() {
			t.Error("another name has the same owner")
		}
		_, err = w.Process().MyLock.TryLock(held)
		world.WantErr(t, err, holdfast.ErrBusy)
		w.Release(elsewhere)
		w.Release(l)
	})
}

func TestOneMessageAtTheLastRelease(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		messages := w.Messages(world.Channel)
		outer := w.Lock(t.Context(), p.MyLock)
		inner := w.Lock(outer.Context(t.Context()), p.MyLock)
		w.At(time.Second)
		w.Release(inner) // no message
		w.At(2 * time.Second)
		w.Release(outer)
		w.At(3 * time.Second)
		world.WantErr(t, outer.Release(t.Context()), holdfast.ErrReleased) // no message

		stale := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Fixed(time.Second)))
		w.At(5 * time.Second) // the lease runs out: no message
		world.WantErr(t, stale.Release(t.Context()), holdfast.ErrLost)
		if got := messages(); !slices.Equal(got, []string{"2s 0"}) {
			t.Errorf("messages %q, want one, at 2s", got)
		}
	})
}

func TestNameWithHashTag(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		const tagged = "{user7}:cart"
		p := w.Process()
		messages := w.Messages("redisson_lock__channel:" + tagged)
		w.Release(w.Lock(t.Context(), p.Mutex(tagged)))
		if got := messages(); !slices.Equal(got, []string{"0s 0"}) {
			t.Errorf("messages %q", got)
		}
		if !w.Mini.Exists("redisson_lock_token:" + tagged) {
			t.Errorf("keys %q", w.Mini.Keys())
		}
	})
}

func TestBusyTryChangesNothing(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		w.At(2 * time.Second)
		before := w.Mini.Snapshot()
		_, err := q.MyLock.TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		if !strings.Contains(err.Error(), `"myLock"`) {
			t.Errorf("%q does not name the key", err)
		}
		if after := w.Mini.Snapshot(); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
		w.Release(l)
	})
}

// A waiter parks for the shortest of three times: what is left of the holder's lease, the poll
// bound, and its own wait.
func TestHowLongAWaiterParks(t *testing.T) {
	for _, tc := range []struct {
		what        string
		lease, wait time.Duration
		least, most time.Duration // of the pause before the next try
		gaveUp      bool
	}{
		{"the holder's", 300 * time.Millisecond, 5 * time.Second, 300 * time.Millisecond, 302 * time.Millisecond, false},
		{"the poll bound", 5 * time.Second, 2 * time.Second, 1075 * time.Millisecond, 1250 * time.Millisecond, true},
		{"its own", 5 * time.Second, 200 * time.Millisecond, 200 * time.Millisecond, 200 * time.Millisecond, true},
	} {
		t.Run(tc.what, func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				p, q := w.Process(), w.Process()
				held := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Fixed(tc.lease)))
				ctx, cancel := context.WithTimeout(t.Context(), tc.wait)
				defer cancel()
				a := w.GoLock(ctx, q.MyLock)
				l, err := a.Result()
				next := a.At
				for _, at := range q.Times("") {
					if at > 0 {
						next = at
						break
					}
				}
				world.Within(t, "parked for", next, tc.least, tc.most)
				if tc.gaveUp {
					world.WantErr(t, err, holdfast.ErrBusy, context.DeadlineExceeded)
					w.Release(held)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				w.Release(l)
			})
		})
	}
}

func TestReEntry(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		one := w.Lock(t.Context(), p.MyLock)
		two := w.Lock(one.Context(t.Context()), p.MyLock)
		three := w.Lock(two.Context(t.Context()), p.MyLock)
		if one.Owner() != three.Owner() || one.Token() != three.Token() || one.Token() == 0 {
			t.Errorf("owners %v and %v, tokens %d and %d", one.Owner(), three.Owner(), one.Token(), three.Token())
		}
		w.WantHolder(one.Owner(), 3)
		w.At(time.Second)
		w.Release(three)
		w.WantHolder(one.Owner(), 2)
		w.WantTTL(29 * time.Second) // the release changes no time to live
		w.Release(two)
		w.WantHolder(one.Owner(), 1)
		w.WantTTL(29 * time.Second)
		w.Release(one)
		w.WantFree()

		before := p.Runs("")
		world.WantErr(t, one.Release(t.Context()), holdfast.ErrReleased)
		world.WantErr(t, three.Release(t.Context()), holdfast.ErrReleased)
		if n := p.Runs(""); n != before {
			t.Errorf("a further release sent %d requests", n-before)
		}
	})
}

func TestReleasedInAnyOrder(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		outer := w.Lock(t.Context(), p.MyLock)
		inner := w.Lock(outer.Context(t.Context()), p.MyLock)
		outerCtx, innerCtx := outer.Context(t.Context()), inner.Context(t.Context())
		w.Release(outer)
		world.WantEnd(t, outerCtx, holdfast.ErrReleased)
		world.WantEnd(t, innerCtx, nil)
		w.WantHolder(inner.Owner(), 1)
		w.At(100 * time.Second) // the inner lease is still renewed
		world.WantEnd(t, innerCtx, nil)
		w.Release(inner)
		world.WantEnd(t, innerCtx, holdfast.ErrReleased)
		w.WantFree()
	})
}

func TestInnerReleaseEndsOnlyTheInnerContext(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		outer := w.Lock(t.Context(), p.MyLock)
		outerCtx := outer.Context(t.Context())
		inner := w.Lock(outerCtx, p.MyLock)
		innerCtx := inner.Context(outerCtx)
		w.Release(inner)
		world.WantEnd(t, innerCtx, holdfast.ErrReleased)
		world.WantEnd(t, outerCtx, nil)
		w.Release(outer)
		world.WantEnd(t, outerCtx, holdfast.ErrReleased)
	})
}

// Ten goroutines release one lease at once, and exactly one release succeeds.
func TestConcurrentReleases(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		results := make(chan error, 10)
		for range cap(results) {
			go func() { results <- l.Release(context.Background()) }()
		}
		released := 0
		for range cap(results) {
			if err := <-results; err == nil {
				released++
			} else {
				world.WantErr(t, err, holdfast.ErrReleased)
			}
		}
		if n := p.Runs(world.FreeRun); released != 1 || n != 1 {
			t.Errorf("released %d times, with %d requests", released, n)
		}
	})
}

func TestNameMapper(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process(holdfast.WithNameMapper(func(name string) string { return "app:{" + name + "}" }))
		l := w.Lock(t.Context(), p.MyLock)
		if got := w.Holders("app:{" + world.Name + "}"); len(got) != 1 {
			t.Errorf("held by %q", got)
		}
		_, err := p.MyLock.TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		if !strings.Contains(err.Error(), `"`+world.Name+`"`) {
			t.Errorf("%q does not name the lock as the program does", err)
		}
		w.Release(w.Lock(l.Context(t.Context()), p.MyLock))
		w.Release(l)
		_, err = p.Mutex("").TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBadArgument)
	})
}

// Every key that a kind writes is under the mapped name.
func TestNameMapperOfEachKind(t *testing.T) {
	locked := func(l holdfast.Locker) error {
		_, err := l.TryLock(t.Context())
		return err
	}
	for kind, use := range map[string]func(c *holdfast.Client) error{
		"Mutex":     func(c *holdfast.Client) error { return locked(c.Mutex(world.Name)) },
		"FairMutex": func(c *holdfast.Client) error { return locked(c.FairMutex(world.Name)) },
		"RWMutex":   func(c *holdfast.Client) error { return locked(c.RWMutex(world.Name)) },
		"RLocker":   func(c *holdfast.Client) error { return locked(c.RWMutex(world.Name).RLocker()) },
		"Striped":   func(c *holdfast.Client) error { return locked(c.Striped(world.Name, 4).For("customer 17")) },
		"Semaphore": func(c *holdfast.Client) error {
			_, err := c.Semaphore(world.Name).TrySetPermits(t.Context(), 1)
			return err
		},
		"PermitSemaphore": func(c *holdfast.Client) error {
			if _, err := c.PermitSemaphore(world.Name).TrySetPermits(t.Context(), 1); err != nil {
				return err
			}
			return locked(c.PermitSemaphore(world.Name).Locker(1))
		},
		"Latch": func(c *holdfast.Client) error {
			_, err := c.Latch(world.Name).TrySetCount(t.Context(), 1)
			return err
		},
		"Leader": func(c *holdfast.Client) error {
			return c.Leader(world.Name).Run(t.Context(), func(context.Context, *holdfast.Term) error { return nil })
		},
	} {
		t.Run(kind, func(t *testing.T) {
			mini := redistest.Mini(t)
			c := clienttest.OpenClient(t, mini.Client(), holdfast.WithNameMapper(func(name string) string { return "app:{" + name + "}" }))
			if err := use(c); err != nil {
				t.Fatal(err)
			}
			keys := mini.Client().Keys(t.Context(), "*").Val()
			if len(keys) == 0 {
				t.Error("nothing is written")
			}
			for _, key := range keys {
				if !strings.Contains(key, "app:{"+world.Name) {
					t.Errorf("%q is not under the mapped name", key)
				}
			}
		})
	}
}

// Tokens grow from grant to grant, whichever process gets the grant, and even after Redis has lost
// all its data.
func TestTokens(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		var last int64
		grown := func(l *holdfast.Lease) {
			t.Helper()
			if l.Token() <= last {
				t.Errorf("token %d after %d", l.Token(), last)
			}
			last = l.Token()
			w.Release(l)
		}
		for range 20 { // all in the same microsecond: time stands still
			grown(w.Lock(t.Context(), p.MyLock))
			grown(w.Lock(t.Context(), q.MyLock))
		}
		if ttl := w.PTTL(world.TokenKey); ttl != 7*24*time.Hour+2*time.Hour { // token is ahead of the clock
			t.Errorf("the token is kept for %v", ttl)
		}
		w.At(time.Second)
		w.Mini.FlushAll()
		grown(w.Lock(t.Context(), p.MyLock))
		grown(w.Lock(t.Context(), p.Mutex(world.Name, holdfast.JavaTokens())))
		if ttl := w.PTTL(world.TokenKey); ttl != -1 {
			t.Errorf("Java's token is kept for %v", ttl)
		}
		grown(w.Lock(t.Context(), p.MyLock))
		if ttl := w.PTTL(world.TokenKey); ttl != -1 {
			t.Errorf("the token that was without end is kept for %v", ttl)
		}
		w.RDB.Del(t.Context(), world.TokenKey)
	})
}

// The token's key is gone, as it is after a week, when the hold is detached and attached. Tokens
// still do not go back.
func TestTokens_HoldOlderThanItsToken(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		w.At(time.Second)
		w.RDB.Del(t.Context(), world.TokenKey)
		owner, err := l.Detach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		attached, err := q.MyLock.Attach(t.Context(), owner)
		if err != nil {
			t.Fatal(err)
		}
		if attached.Token() < l.Token() {
			t.Errorf("token %d after %d", attached.Token(), l.Token())
		}
		w.Release(attached)
		w.At(time.Second + time.Microsecond)
		next := w.Lock(t.Context(), p.MyLock)
		if next.Token() <= attached.Token() {
			t.Errorf("token %d after %d", next.Token(), attached.Token())
		}
		w.Release(next)
	})
}
