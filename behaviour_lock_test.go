// This file is about what a lock looks like in Redis, and how it is entered again and released.

package holdfast_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

func TestTheFirstLock(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l := w.lock(t.Context(), p.mutex)
		w.wantHolder(l.Owner(), 1)
		w.wantTTL(30 * time.Second)
		form := regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9]+$`)
		if id := l.Owner().String(); !form.MatchString(id) {
			t.Errorf("owner %q", id)
		}
		if kind := w.rdb.Type(t.Context(), name).Val(); kind != "hash" {
			t.Errorf("type %s", kind)
		}
		nested := w.lock(l.Context(t.Context()), p.mutex)
		if n := w.rdb.HLen(t.Context(), name).Val(); n != 1 {
			t.Errorf("HLEN %d", n)
		}
		w.release(nested)
		w.release(l)
		w.wantFree()
	})
}

func TestClientIDs(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		id := func(l *lease.Lease) (client, number string) {
			client, number, _ = strings.Cut(l.Owner().String(), ":")
			return client, number
		}
		p, q := w.process(), w.process()
		first := w.lock(t.Context(), p.Mutex("a"))
		second := w.lock(t.Context(), p.Mutex("b"))
		other := w.lock(t.Context(), q.Mutex("c"))
		c1, n1 := id(first)
		c2, n2 := id(second)
		c3, _ := id(other)
		if len(c1) != 36 || c1 != c2 || n1 == n2 || c1 == c3 {
			t.Errorf("owners %v, %v and, of another Client, %v", first.Owner(), second.Owner(), other.Owner())
		}
		w.release(first)
		w.release(second)
		w.release(other)
	})
}

func TestAPlainContextIsANewOwner(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l := w.lock(t.Context(), p.mutex)
		_, err := p.mutex.TryLock(t.Context())
		wantErr(t, err, holdfast.ErrBusy)
		// For another name or another Client the lease in the context does not count.
		held := l.Context(t.Context())
		elsewhere := w.lock(held, p.Mutex("elsewhere"))
		if elsewhere.Owner() == l.Owner() {
			t.Error("another name has the same owner")
		}
		_, err = w.process().mutex.TryLock(held)
		wantErr(t, err, holdfast.ErrBusy)
		w.release(elsewhere)
		w.release(l)
	})
}

func TestOneMessageAtTheLastRelease(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		messages := w.messages(channel)
		outer := w.lock(t.Context(), p.mutex)
		inner := w.lock(outer.Context(t.Context()), p.mutex)
		w.at(time.Second)
		w.release(inner) // no message
		w.at(2 * time.Second)
		w.release(outer)
		w.at(3 * time.Second)
		wantErr(t, outer.Release(t.Context()), holdfast.ErrReleased) // no message

		stale := w.lock(t.Context(), p.Mutex(name, holdfast.Fixed(time.Second)))
		w.at(5 * time.Second) // the lease runs out: no message
		wantErr(t, stale.Release(t.Context()), holdfast.ErrLost)
		if got := messages(); !slices.Equal(got, []string{"2s 0"}) {
			t.Errorf("messages %q, want one, at 2s", got)
		}
	})
}

func TestNameWithHashTag(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		const tagged = "{user7}:cart"
		p := w.process()
		messages := w.messages("redisson_lock__channel:" + tagged)
		w.release(w.lock(t.Context(), p.Mutex(tagged)))
		if got := messages(); !slices.Equal(got, []string{"0s 0"}) {
			t.Errorf("messages %q", got)
		}
		if !w.mini.Exists("redisson_lock_token:" + tagged) {
			t.Errorf("keys %q", w.mini.Keys())
		}
	})
}

func TestBusyTryChangesNothing(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		l := w.lock(t.Context(), p.mutex)
		w.at(2 * time.Second)
		before := w.mini.Snapshot()
		_, err := q.mutex.TryLock(t.Context())
		wantErr(t, err, holdfast.ErrBusy)
		if !strings.Contains(err.Error(), `"myLock"`) {
			t.Errorf("%q does not name the key", err)
		}
		if after := w.mini.Snapshot(); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
		w.release(l)
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
		{"the poll bound", 5 * time.Second, 2 * time.Second, 1125 * time.Millisecond, 1250 * time.Millisecond, true},
		{"its own", 5 * time.Second, 200 * time.Millisecond, 200 * time.Millisecond, 200 * time.Millisecond, true},
	} {
		t.Run(tc.what, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p, q := w.process(), w.process()
				held := w.lock(t.Context(), p.Mutex(name, holdfast.Fixed(tc.lease)))
				ctx, cancel := context.WithTimeout(t.Context(), tc.wait)
				defer cancel()
				a := w.goLock(ctx, q.mutex)
				l, err := a.result()
				next := a.at
				for _, at := range append(q.times(lockRun), q.times(enterRun)...) {
					if at > 0 {
						next = at
						break
					}
				}
				within(t, "parked for", next, tc.least, tc.most)
				if tc.gaveUp {
					wantErr(t, err, holdfast.ErrBusy, context.DeadlineExceeded)
					w.release(held)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				w.release(l)
			})
		})
	}
}

func TestReEntry(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		one := w.lock(t.Context(), p.mutex)
		two := w.lock(one.Context(t.Context()), p.mutex)
		three := w.lock(two.Context(t.Context()), p.mutex)
		if one.Owner() != three.Owner() || one.Token() != three.Token() || one.Token() == 0 {
			t.Errorf("owners %v and %v, tokens %d and %d", one.Owner(), three.Owner(), one.Token(), three.Token())
		}
		w.wantHolder(one.Owner(), 3)
		w.at(time.Second)
		w.release(three)
		w.wantHolder(one.Owner(), 2)
		w.wantTTL(29 * time.Second) // the release changes no time to live
		w.release(two)
		w.wantHolder(one.Owner(), 1)
		w.wantTTL(29 * time.Second)
		w.release(one)
		w.wantFree()

		before := p.runs("")
		wantErr(t, one.Release(t.Context()), holdfast.ErrReleased)
		wantErr(t, three.Release(t.Context()), holdfast.ErrReleased)
		if n := p.runs(""); n != before {
			t.Errorf("a further release sent %d requests", n-before)
		}
	})
}

func TestReleasedInAnyOrder(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		outer := w.lock(t.Context(), p.mutex)
		inner := w.lock(outer.Context(t.Context()), p.mutex)
		outerCtx, innerCtx := outer.Context(t.Context()), inner.Context(t.Context())
		w.release(outer)
		wantEnd(t, outerCtx, holdfast.ErrReleased)
		wantEnd(t, innerCtx, nil)
		w.wantHolder(inner.Owner(), 1)
		w.at(100 * time.Second) // the inner lease is still renewed
		wantEnd(t, innerCtx, nil)
		w.release(inner)
		wantEnd(t, innerCtx, holdfast.ErrReleased)
		w.wantFree()
	})
}

func TestInnerReleaseEndsOnlyTheInnerContext(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		outer := w.lock(t.Context(), p.mutex)
		outerCtx := outer.Context(t.Context())
		inner := w.lock(outerCtx, p.mutex)
		innerCtx := inner.Context(outerCtx)
		w.release(inner)
		wantEnd(t, innerCtx, holdfast.ErrReleased)
		wantEnd(t, outerCtx, nil)
		w.release(outer)
		wantEnd(t, outerCtx, holdfast.ErrReleased)
	})
}

// Ten goroutines release one lease at once, and exactly one release succeeds.
func TestConcurrentReleases(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l := w.lock(t.Context(), p.mutex)
		results := make(chan error, 10)
		for range cap(results) {
			go func() { results <- l.Release(context.Background()) }()
		}
		released := 0
		for range cap(results) {
			if err := <-results; err == nil {
				released++
			} else {
				wantErr(t, err, holdfast.ErrReleased)
			}
		}
		if n := p.runs(freeRun); released != 1 || n != 1 {
			t.Errorf("released %d times, with %d requests", released, n)
		}
	})
}

func TestNameMapper(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process(holdfast.WithNameMapper(func(name string) string { return "app:{" + name + "}" }))
		l := w.lock(t.Context(), p.mutex)
		if got := w.holders("app:{" + name + "}"); len(got) != 1 {
			t.Errorf("held by %q", got)
		}
		_, err := p.mutex.TryLock(t.Context())
		wantErr(t, err, holdfast.ErrBusy)
		if !strings.Contains(err.Error(), `"`+name+`"`) {
			t.Errorf("%q does not name the lock as the program does", err)
		}
		w.release(w.lock(l.Context(t.Context()), p.mutex))
		w.release(l)
		_, err = p.Mutex("").TryLock(t.Context())
		wantErr(t, err, holdfast.ErrBadArgument)
	})
}

// Every key that a kind writes is under the mapped name.
func TestNameMapperOfEachKind(t *testing.T) {
	locked := func(l holdfast.Locker) error {
		_, err := l.TryLock(t.Context())
		return err
	}
	for kind, use := range map[string]func(c *holdfast.Client) error{
		"Mutex":     func(c *holdfast.Client) error { return locked(c.Mutex(name)) },
		"FairMutex": func(c *holdfast.Client) error { return locked(c.FairMutex(name)) },
		"RWMutex":   func(c *holdfast.Client) error { return locked(c.RWMutex(name)) },
		"RLocker":   func(c *holdfast.Client) error { return locked(c.RWMutex(name).RLocker()) },
		"Striped":   func(c *holdfast.Client) error { return locked(c.Striped(name, 4).For("customer 17")) },
		"Semaphore": func(c *holdfast.Client) error {
			_, err := c.Semaphore(name).TrySetPermits(t.Context(), 1)
			return err
		},
		"PermitSemaphore": func(c *holdfast.Client) error {
			if _, err := c.PermitSemaphore(name).TrySetPermits(t.Context(), 1); err != nil {
				return err
			}
			return locked(c.PermitSemaphore(name).Locker(1))
		},
		"Latch": func(c *holdfast.Client) error {
			_, err := c.Latch(name).TrySetCount(t.Context(), 1)
			return err
		},
	} {
		t.Run(kind, func(t *testing.T) {
			mini := redistest.Mini(t)
			c := openClient(t, mini.Client(), holdfast.WithNameMapper(func(name string) string { return "app:{" + name + "}" }))
			if err := use(c); err != nil {
				t.Fatal(err)
			}
			keys := mini.Client().Keys(t.Context(), "*").Val()
			if len(keys) == 0 {
				t.Error("nothing is written")
			}
			for _, key := range keys {
				if !strings.Contains(key, "app:{"+name) {
					t.Errorf("%q is not under the mapped name", key)
				}
			}
		})
	}
}

// Tokens grow from grant to grant, whichever process gets the grant, and even after Redis has lost
// all its data.
func TestTokens(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		var last int64
		grown := func(l *holdfast.Lease) {
			t.Helper()
			if l.Token() <= last {
				t.Errorf("token %d after %d", l.Token(), last)
			}
			last = l.Token()
			w.release(l)
		}
		for range 20 { // all in the same microsecond: time stands still
			grown(w.lock(t.Context(), p.mutex))
			grown(w.lock(t.Context(), q.mutex))
		}
		if ttl := w.pttl(tokenKey); ttl != 7*24*time.Hour+2*time.Hour { // token is ahead of the clock
			t.Errorf("the token is kept for %v", ttl)
		}
		w.at(time.Second)
		w.mini.FlushAll()
		grown(w.lock(t.Context(), p.mutex))
		grown(w.lock(t.Context(), p.Mutex(name, holdfast.JavaTokens())))
		if ttl := w.pttl(tokenKey); ttl != -1 {
			t.Errorf("Java's token is kept for %v", ttl)
		}
		grown(w.lock(t.Context(), p.mutex))
		if ttl := w.pttl(tokenKey); ttl != -1 {
			t.Errorf("the token that was without end is kept for %v", ttl)
		}
		w.rdb.Del(t.Context(), tokenKey)
	})
}

// The token's key is gone, as it is after a week, when the hold is detached and attached. Tokens
// still do not go back.
func TestTokens_HoldOlderThanItsToken(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		l := w.lock(t.Context(), p.mutex)
		w.at(time.Second)
		w.rdb.Del(t.Context(), tokenKey)
		owner, err := l.Detach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		attached, err := q.mutex.Attach(t.Context(), owner)
		if err != nil {
			t.Fatal(err)
		}
		if attached.Token() < l.Token() {
			t.Errorf("token %d after %d", attached.Token(), l.Token())
		}
		w.release(attached)
		w.at(time.Second + time.Microsecond)
		next := w.lock(t.Context(), p.mutex)
		if next.Token() <= attached.Token() {
			t.Errorf("token %d after %d", next.Token(), attached.Token())
		}
		w.release(next)
	})
}
