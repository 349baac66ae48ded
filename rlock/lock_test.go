// This file is about what a lock looks like in Redis, how it is entered again and released, and what becomes of it
// with too few replicas.

package rlock_test

import (
	"context"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

// A lock is a hash of one field: the id of its Client, a number of its own, and the count.
func TestWhatALockLooksLike(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		w.WantHolder(l.Owner(), 1)
		w.WantTTL(30 * time.Second)
		form := regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9]+$`)
		if id := l.Owner().String(); !form.MatchString(id) {
			t.Errorf("owner %q", id)
		}
		world.Equal(t, w.RDB.Type(t.Context(), world.Name).Val(), "hash", "type %s")
		// For another name or another Client the lease in a context does not count.
		ctx := l.Context(t.Context())
		elsewhere, others := w.Lock(ctx, p.Mutex("elsewhere")), w.Lock(t.Context(), q.Mutex("other"))
		world.WantErr(t, second(q.MyLock.TryLock(ctx)), holdfast.ErrBusy)
		client := func(l *lease.Lease) string { return l.Owner().String()[:36] }
		if client(l) != client(elsewhere) || l.Owner() == elsewhere.Owner() || client(l) == client(others) {
			t.Errorf("owners %v, %v and, of another Client, %v", l.Owner(), elsewhere.Owner(), others.Owner())
		}
		w.Release(elsewhere, others, l)
		w.WantFree()
		sent := p.Runs("")
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrReleased)
		world.Equal(t, p.Runs("")-sent, 0, "a further release sent %d requests")
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

// Ten goroutines release one lease at once, and exactly one release succeeds.
func TestConcurrentReleases(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		released := 0
		var all []*world.Attempt
		for range 10 {
			all = append(all, w.Try(func() (*lease.Lease, error) { return nil, l.Release(context.Background()) }))
		}
		for _, a := range all {
			if _, err := a.Result(); err == nil {
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

// Tokens grow from grant to grant, whichever process gets the grant, and even after Redis has lost all its data.
func TestTokens(t *testing.T) {
	for _, kind := range []string{"mutex", "fairmutex"} {
		play(t, kind, func(t *testing.T, w *world.World) { tokensGrow(t, w, leased[kind].locker) })
	}
}

func tokensGrow(t *testing.T, w *world.World, of func(p *world.Process) lease.Locker) {
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
		grown(w.Lock(t.Context(), of(p)))
		grown(w.Lock(t.Context(), of(q)))
	}
	kept := func(want time.Duration) {
		t.Helper()
		world.Equal(t, w.PTTL(world.TokenKey), want, "the token is kept for %v, want %v", want)
	}
	kept(7*24*time.Hour + 2*time.Hour) // it is ahead of the clock
	w.At(time.Second)
	w.Mini.FlushAll()
	grown(w.Lock(t.Context(), of(p)))
	grown(w.Lock(t.Context(), p.Mutex(world.Name, holdfast.JavaTokens())))
	kept(-1)
	grown(w.Lock(t.Context(), of(p)))
	kept(-1) // a token without end stays so
	w.RDB.Del(t.Context(), world.TokenKey)
}

// Redis keeps a token that is ahead of the clock until the clock has reached it. So the next token
// is greater, even if nobody locks for days after the clock was set right.
func TestTokensGrowAfterAClockThatWasAhead(t *testing.T) {
	const day = 24 * time.Hour
	for _, kind := range []string{"mutex", "fairmutex", "writer"} {
		of := leased[kind].locker
		play(t, kind, func(t *testing.T, w *world.World) {
			start, last := time.Now(), int64(0)
			for i, at := range []time.Duration{30 * day, 0, 8 * day, 28 * day, 34 * day} {
				if i > 1 {
					time.Sleep(at - time.Since(start))
				}
				w.Mini.SetTime(start.Add(at)) // a month ahead, and then set right
				p := w.Process()
				l := w.Lock(t.Context(), of(p))
				if l.Token() <= last {
					t.Errorf("on day %d: token %d after %d", at/day, l.Token(), last)
				}
				last = l.Token()
				w.Release(l)
				p.Close() // with nothing to do, it would keep its connections for a month
			}
			// Redis keeps the token while it is ahead, and then for its usual life, but no longer.
			if ttl := w.PTTL(world.TokenKey); ttl > 8*day {
				t.Errorf("it is kept for %v", ttl)
			}
		})
	}
}

// needsReplica starts a process that requires one replica, and returns the number of replicas that acknowledge.
func needsReplica(w *world.World, options ...holdfast.Option) (*world.Process, *atomic.Int64) {
	acknowledge := new(atomic.Int64)
	acknowledge.Store(1)
	p := w.Process(append([]holdfast.Option{holdfast.WithReplicas(1)}, options...)...)
	p.Net.OnCommand(func(c redistest.Command) redistest.Fault {
		if c.Name == "WAIT" {
			return redistest.ReplyNumber(acknowledge.Load())
		}
		return p.Observe(c)
	})
	return p, acknowledge
}

// A call on a lease does not count if too few replicas acknowledge it. The lease that was granted
// before stays as it was.
func TestReplicas_EachCallOfAHolder(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, acknowledge := needsReplica(w)
		l := w.Lock(t.Context(), p.MyLock)
		deadline := l.Deadline()

		acknowledge.Store(0)
		world.WantErr(t, second(p.MyLock.Lock(l.Context(t.Context()))), holdfast.ErrNotReplicated)
		world.WantErr(t, l.Extend(t.Context(), time.Hour), holdfast.ErrNotReplicated)
		if got := l.Deadline(); !got.Equal(deadline) {
			t.Errorf("the deadline went by %v", got.Sub(deadline))
		}
		must(t, l.Err())

		acknowledge.Store(1)
		w.Release(w.Lock(l.Context(t.Context()), p.MyLock))
		if err := l.Extend(t.Context(), time.Minute); err != nil || !l.Deadline().After(deadline) {
			t.Errorf("Extend: %v, the deadline went by %v", err, l.Deadline().Sub(deadline))
		}
		w.Release(l)
	})
}

func TestReplicas_Attach(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, _ := needsReplica(w)
		q, acknowledge := needsReplica(w)
		owner := detach(t, w.Lock(t.Context(), p.MyLock))
		acknowledge.Store(0)
		world.WantErr(t, second(q.MyLock.Attach(t.Context(), owner)), holdfast.ErrNotReplicated)
		time.Sleep(2 * time.Second) // the hold is moved back
		acknowledge.Store(1)
		l := attach(t, q.MyLock, owner)
		w.Release(l)
	})
}

// Detach leaves a whole lease, so that there is time to attach.
func TestDetachLeavesAWholeLease(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Renewed(30*time.Second)))
		time.Sleep(9 * time.Second) // just before the lease is renewed
		owner := detach(t, l)
		world.Equal(t, w.RDB.PTTL(t.Context(), world.Name).Val(), 30*time.Second, "%v are left")
		l = attach(t, p.MyLock, owner)
		w.Release(l)
	})
}

// A nested lock that asks for more replicas than the outer one gets its lease only if they have it; and
// while it lasts the renewals wait for them too.
func TestANestedLockWaitsForItsOwnReplicas(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, acknowledge := needsReplica(w, holdfast.WithReplicas(0))
		m := p.Mutex(world.Name, holdfast.Replicas(2))
		outer := w.Lock(t.Context(), p.MyLock)
		if p.Net.Count("WAIT") != 0 {
			t.Fatal("the outer lock waits for replicas")
		}
		acknowledge.Store(0)
		world.WantErr(t, second(m.Lock(outer.Context(t.Context()))), holdfast.ErrNotReplicated)
		must(t, outer.Err())
		acknowledge.Store(2)
		inner := w.Lock(outer.Context(t.Context()), m)
		before := p.Net.Count("WAIT")
		time.Sleep(time.Minute)
		if p.Net.Count("WAIT") == before {
			t.Error("the renewals do not wait for the replicas")
		}
		w.Release(inner)
		acknowledge.Store(0) // it has not been promised more than the master's word
		time.Sleep(time.Minute)
		w.Release(outer)
	})
}
