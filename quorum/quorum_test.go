// A Quorum is a lock on a majority of servers; these tests run on virtual time.

package quorum_test

import (
	"context"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redises"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/quorum"
)

func TestQuorum(t *testing.T) {
	play(t, 5, func(t *testing.T, w *stage) {
		p := w.process()
		q := p.quorum()
		l := w.lock(q)
		ctx := l.Context(t.Context())
		redises.WantLive(t, l, ctx)
		w.WantHeldOn(5)
		if left := time.Until(l.Deadline()); left < 29*time.Second || left > 30*time.Second {
			t.Errorf("%v left", left)
		}
		if l.Token() != slices.Max(l.Tokens()) || len(l.Tokens()) != 5 {
			t.Errorf("token %d of %d", l.Token(), l.Tokens())
		}
		for _, other := range []*quorum.Quorum{q, w.process().quorum()} {
			_, err := other.TryLock(t.Context())
			world.WantErr(t, err, holdfast.ErrBusy)
		}

		inner, err := p.quorum().TryLock(ctx) // another Quorum value, the same lock
		if err != nil {
			t.Fatal(err)
		}
		if inner.Token() != l.Token() {
			t.Errorf("re-entered with the token %d", inner.Token())
		}
		redises.Release(t, l)
		redises.WantEnded(t, l, ctx, holdfast.ErrReleased)
		redises.WantLive(t, inner, inner.Context(t.Context()))
		_, err = q.Lock(ctx)
		world.WantErr(t, err, holdfast.ErrReleased)
		time.Sleep(100 * time.Second) // every member is renewed
		w.WantHeldOn(5)
		redises.Release(t, inner)
		w.WantHeldOn(0)
		world.WantErr(t, inner.Release(t.Context()), holdfast.ErrReleased)
	})
}

func TestQuorum_Do(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		q := w.process().quorum()
		err := holdfast.Do(t.Context(), q, func(ctx context.Context) error {
			return holdfast.Do(ctx, q, func(context.Context) error { return nil })
		}, redises.WantName(t, name)...)
		if err != nil {
			t.Error(err)
		}
		w.WantHeldOn(0)
	})
}

// A quorum is granted exactly when a majority is up. Otherwise the servers that granted are free
// again.
func TestQuorum_Masks(t *testing.T) {
	play(t, 5, func(t *testing.T, w *stage) {
		w.began()
		time.Sleep(3 * time.Second) // until then a Lock may take two rounds
		for mask := range 32 {
			p := w.process()
			for i := range p.Clients {
				if mask&(1<<i) == 0 {
					p.Unplug(i)
				}
			}
			up, asked := bits.OnesCount(uint(mask)), w.Now()
			l, err := p.quorum().TryLock(t.Context())
			if (err == nil) != (up >= 3) {
				t.Errorf("%05b: %v", mask, err)
			}
			if took := w.Now() - asked; took > 600*time.Millisecond || err == nil && took > 10*time.Millisecond {
				t.Errorf("%05b: it took %v", mask, took)
			}
			if err == nil {
				w.WantHeldOn(up)
				redises.Release(t, l)
			} else {
				world.WantErr(t, err, holdfast.ErrNoQuorum)
			}
			w.WantHeldOn(0)
		}
	})
}

// A wait ends with its context, and says what it has waited for. A waiter gets the lock soon after the release.
func TestQuorum_WaitEnds(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p, other := w.began(), w.process()
		waits := func(within time.Duration, targets ...error) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			began := w.Now()
			_, err := p.quorum().Lock(ctx)
			world.WantErr(t, err, targets...)
			if took := w.Now() - began; took != within {
				t.Errorf("it took %v", took)
			}
		}
		l := w.lock(other.quorum())
		waits(3*time.Second, holdfast.ErrBusy, context.DeadlineExceeded)
		time.AfterFunc(20*time.Second, func() { l.Release(context.Background()) })
		began := w.Now()
		next := w.lock(p.quorum())
		world.Within(t, "it waited", w.Now()-began, 20*time.Second, 20*time.Second+250*time.Millisecond)
		if next.Token() <= l.Token() {
			t.Errorf("token %d after %d", next.Token(), l.Token())
		}
		redises.Release(t, next)
		p.Unplug(0)
		p.Unplug(1)
		waits(3*time.Second, holdfast.ErrNoQuorum, context.DeadlineExceeded)
		w.WantHeldOn(0)
		waits(0, context.DeadlineExceeded)
	})
}

// A quorum is not granted if its token could not be written to a majority while the grants last. It is
// not enough that they were valid when a majority had answered.
func TestQuorum_GrantedTooLate(t *testing.T) {
	for says, fault := range map[string]redistest.Fault{
		"the token was written to 1 of 3": redistest.ReplyError("NOPERM no"),
		"too late":                        redistest.Delay(220 * time.Millisecond), // twice: the script is not known there
	} {
		play(t, 3, func(t *testing.T, w *stage) {
			p := w.began()
			w.Servers[0].Set(tokenKey, strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro(), 10))
			for _, net := range p.Nets[1:] {
				net.OnCommand(func(c redistest.Command) redistest.Fault {
					if len(c.Args) == 6 && c.Args[2] == tokenKey { // raise
						return fault
					}
					return redistest.Pass
				})
			}
			_, err := holdfast.NewQuorumOf(name, p.Clients, lease.DefaultLease, func(c *holdfast.Client) holdfast.Locker {
				return c.Mutex(name, holdfast.Fixed(200*time.Millisecond))
			}).TryLock(t.Context())
			world.WantErr(t, err, holdfast.ErrNoQuorum)
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("refused for another reason: %v", err)
			}
			w.WantHeldOn(0)
		})
	}
}

// The error names what a server does not allow as soon as that keeps a majority from granting.
func TestQuorum_Refused(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.began()
		w.Servers[0].Set(name, "a string")
		redises.Release(t, w.lock(p.quorum()))
		w.Servers[1].Set(name, "a string")
		_, err := p.quorum().Lock(t.Context())
		world.WantErr(t, err, holdfast.ErrWrongType)
		w.Servers[0].Del(name)
		w.Servers[1].Del(name)
		for i := range 2 {
			w.Servers[i].Set(markerKey, "none of ours")
		}
		_, err = p.quorum().Lock(t.Context())
		world.WantErr(t, err, holdfast.ErrWrongType)
		w.WantHeldOn(0)
	})
}

// The members of a quorum may be any Locker: here readers share the lock, and a writer is alone.
func TestQuorum_OfReadersAndWriters(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		side := func(p *process, write bool) *quorum.Quorum {
			return holdfast.NewQuorumOf(name, p.Clients, lease.DefaultLease, func(c *holdfast.Client) holdfast.Locker {
				if write {
					return c.RWMutex(name)
				}
				return c.RWMutex(name).RLocker()
			})
		}
		p, other := w.process(), w.process()
		first := w.lock(side(p, false))
		second := w.lock(side(other, false))
		_, err := side(other, true).TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		// A reader's context does not re-enter the write side.
		_, err = side(p, true).TryLock(first.Context(t.Context()))
		world.WantErr(t, err, holdfast.ErrBusy)
		redises.Release(t, first)
		redises.Release(t, second)
		writer := w.lock(side(p, true))
		_, err = side(other, false).TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		redises.Release(t, writer)
		reader := w.lock(side(other, false))
		if reader.Token() != writer.Token() {
			t.Errorf("the readers' token is %d, the writer's was %d", reader.Token(), writer.Token())
		}
		redises.Release(t, reader)
	})
}

func TestQuorum_BadArguments(t *testing.T) {
	play(t, 2, func(t *testing.T, w *stage) {
		c := w.process().Clients
		short := holdfast.NewQuorumOf(name, c, time.Second, func(c *holdfast.Client) holdfast.Locker { return c.Mutex(name) })
		kept := holdfast.NewQuorumOf(name, c, 20*time.Second, func(c *holdfast.Client) holdfast.Locker {
			return c.Mutex(name, holdfast.Grace(15*time.Second))
		})
		// With 2 permits on each of three servers, three holders could have 2 each.
		permits := holdfast.NewQuorumOf(name, c, 30*time.Second, func(c *holdfast.Client) holdfast.Locker { return c.PermitSemaphore(name).Locker(1) })
		for _, tc := range []struct {
			q    *quorum.Quorum
			says string
		}{
			{holdfast.NewQuorum(name, nil), "no servers"},
			{holdfast.NewQuorum(name, []*holdfast.Client{c[0], nil}), "Client 1 is nil"},
			{holdfast.NewQuorum(name, []*holdfast.Client{nil}), "Client 0 is nil"},
			{holdfast.NewQuorum(name, []*holdfast.Client{c[0], c[1], c[0]}), "twice"},
			{holdfast.NewQuorum(name, []*holdfast.Client{c[0], holdfast.New(nil)}), "go-redis client is nil"},
			{holdfast.NewQuorum("", c), "name"},
			{holdfast.NewQuorum(name, c, holdfast.Renewed(time.Millisecond)), "shorter than"},
			{short, "longer than"},
			{kept, "longer than"},
			{permits, "does not say where it stands"},
		} {
			_, err := tc.q.Lock(t.Context())
			if err == nil {
				t.Fatalf("granted, want an error that says %q", tc.says)
			}
			world.WantErr(t, err, holdfast.ErrBadArgument)
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v: does not say %q", err, tc.says)
			}
		}
		w.WantHeldOn(0)
	})
}

// A context of the lease is freed with its parent, and ends with the lease.
func TestQuorum_Contexts(t *testing.T) {
	play(t, 1, func(t *testing.T, w *stage) {
		l := w.lock(w.process().quorum())
		parent, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range 1000 {
			one, end := context.WithCancel(parent)
			ctx := l.Context(one)
			end()
			if ctx.Err() == nil {
				t.Fatal("it outlives its parent")
			}
		}
		ctx := l.Context(parent)
		time.Sleep(time.Second)
		synctest.Wait()
		if ctx.Err() != context.DeadlineExceeded {
			t.Error(ctx.Err())
		}
		redises.Release(t, l)
		world.WantErr(t, context.Cause(l.Context(t.Context())), holdfast.ErrReleased)
	})
}
