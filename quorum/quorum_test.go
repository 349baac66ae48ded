// A Quorum is a lock on a majority of servers; these tests run on virtual time.

package quorum_test

import (
	"context"
	"errors"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
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

// A quorum may lose its members one by one. It is lost when no majority is left, and a release reports
// a loss that nobody had noticed before.
func TestQuorum_Lost(t *testing.T) {
	play(t, 5, func(t *testing.T, w *stage) {
		p := w.began()
		l := w.lock(p.quorum())
		ctx := l.Context(t.Context())
		for i := range 2 {
			w.Servers[i].Del(name)
			time.Sleep(11 * time.Second)
			redises.WantLive(t, l, ctx)
		}
		w.Servers[2].Del(name)
		time.Sleep(10*time.Second + 100*time.Millisecond)
		redises.WantEnded(t, l, ctx, holdfast.ErrLost)
		w.WantHeldOn(0) // the lease gives back the rest
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		if !l.Deadline().IsZero() {
			t.Error("it has a deadline")
		}
		_, err := p.quorum().Lock(ctx)
		world.WantErr(t, err, holdfast.ErrLost)
		for lost := 2; lost <= 3; lost++ {
			l := w.lock(p.quorum())
			for i := range lost {
				w.Servers[i].Del(name)
			}
			if err := l.Release(t.Context()); errors.Is(err, holdfast.ErrLost) != (lost > 2) || err == nil != (lost <= 2) {
				t.Errorf("released after a loss on %d of 5: %v", lost, err)
			}
			w.WantHeldOn(0)
		}
	})
}

// A holder that is cut off from a majority learns of its loss before another process gets the lock.
func TestQuorum_CutOff(t *testing.T) {
	play(t, 5, func(t *testing.T, w *stage) {
		p, other := w.began(), w.process()
		l := w.lock(p.quorum())
		ctx := l.Context(t.Context())
		var told time.Duration
		go func() { <-ctx.Done(); told = w.Now() }()
		time.Sleep(12 * time.Second)
		for i := range 3 {
			p.Unplug(i)
		}
		next := w.lock(other.quorum())
		synctest.Wait()
		if told == 0 || told >= w.Now() {
			t.Errorf("told at %v, the next was in at %v", told, w.Now())
		}
		redises.WantEnded(t, l, ctx, holdfast.ErrLost)
		if next.Token() <= l.Token() {
			t.Errorf("token %d after %d", next.Token(), l.Token())
		}
		redises.Release(t, next)
	})
}

// A release that reaches a majority of the servers frees the lock.
func TestQuorum_ReleaseWithoutAll(t *testing.T) {
	play(t, 5, func(t *testing.T, w *stage) {
		p, other := w.began(), w.process()
		l := w.lock(p.quorum())
		p.Unplug(0)
		p.Unplug(1)
		began := w.Now()
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // the release goes on all the same
		if err := l.Release(ctx); err != nil || w.Now()-began > 20*time.Millisecond {
			t.Errorf("%v, in %v", err, w.Now()-began)
		}
		l = w.lock(other.quorum())
		w.WantHeldOn(5) // the first lease still holds two of them
		redises.Release(t, l)
		p.Plug(0)
		p.Plug(1)
		w.WantHeldOn(0)

		l = w.lock(p.quorum())
		for i := range 3 {
			p.Unplug(i)
		}
		if err := l.Release(t.Context()); err == nil {
			t.Error("released without a majority")
		}
		for i := range 3 {
			p.Plug(i)
		}
		w.WantHeldOn(0)
	})
}

// The token grows whatever majority grants it, even where the servers' clocks are far apart.
func TestQuorum_TokenGrowsOverMajorities(t *testing.T) {
	play(t, 5, func(t *testing.T, w *stage) {
		p := w.began()
		ahead := time.Now().Add(48 * time.Hour).UnixMicro()
		w.Servers[0].Set(tokenKey, strconv.FormatInt(ahead, 10)) // as if its clock had been there
		last := int64(0)
		for _, majority := range [][]int{{0, 1, 2}, {2, 3, 4}, {1, 3, 4}, {0, 2, 4}, {1, 2, 3}} {
			for i := range p.Clients {
				if slices.Contains(majority, i) {
					p.Plug(i)
				} else {
					p.Unplug(i)
				}
			}
			l := w.lock(p.quorum())
			if l.Token() <= last || l.Token() <= ahead {
				t.Errorf("by %v: token %d after %d", majority, l.Token(), last)
			}
			last = l.Token()
			known := 0
			for i := range w.Servers {
				if w.token(i) >= last {
					known++
				}
			}
			if known < 3 {
				t.Errorf("by %v: %d servers know it", majority, known)
			}
			if ttl := w.Servers[majority[0]].TTL(tokenKey); majority[0] != 0 && ttl < 7*24*time.Hour-time.Second {
				t.Errorf("it is kept for %v", ttl)
			}
			redises.Release(t, l)
		}
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

// A server that comes back without its data does not count until the longest lease is over.
// Otherwise B would be in with A.
func TestQuorum_Amnesia(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		a, b := w.began(), w.process()
		a.Unplug(2) // A holds two of three servers
		l := w.lock(a.quorum())
		w.WantHeldOn(2)
		held := l.Context(t.Context())

		time.Sleep(15 * time.Second)
		w.RestartEmpty(1)
		restarted := w.Now()
		_, err := b.quorum().TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		if text, _ := w.Servers[1].Get(markerKey); !strings.HasPrefix(text, "lost:") {
			t.Errorf("the marker is %q", text)
		}
		if ttl := w.Servers[1].TTL(markerKey); ttl != 0 {
			t.Errorf("the marker goes away after %v", ttl)
		}
		var told time.Duration
		go func() { <-held.Done(); told = w.Now() }()
		next := w.lock(b.quorum())
		synctest.Wait()
		if told == 0 || told > w.Now() {
			t.Errorf("A was told at %v, B was in at %v", told, w.Now())
		}
		// A gave the first server back when A learned of its loss, and A never held the third. So B
		// need not wait for the second.
		if told-restarted > 10*time.Second+100*time.Millisecond {
			t.Errorf("A was told %v later", told-restarted)
		}
		world.WantErr(t, l.Err(), holdfast.ErrLost)
		w.WantHeldOn(2) // not on the server that does not count
		redises.Release(t, next)

		b.Unplug(2)
		began := w.Now()
		redises.Release(t, w.lock(b.quorum()))
		if since := w.Now() - restarted; since < 30*time.Second || began-restarted > 29*time.Second {
			t.Errorf("it counts again after %v", since)
		}
	})
}

// If a member was down when the quorum began, the quorum later takes it for a server that lost its
// data. The other servers go on.
func TestQuorum_BeginsWithoutOne(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.process()
		p.Unplug(0)
		_, err := p.quorum().TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrNoQuorum)
		began := w.Now()
		redises.Release(t, w.lock(p.quorum())) // this looks the same as a loss of data on two servers
		if took := w.Now() - began; took < 29*time.Second || took > 32*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// Many processes begin the same quorum at once. Those that lose a race give back what they took, and one
// of them is in soon.
func TestQuorum_BeginTogether(t *testing.T) {
	play(t, 5, func(t *testing.T, w *stage) {
		const contenders = 10
		each := redistest.Count(t, 50)
		inside := 0
		var tokens []int64
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range contenders {
			p := w.process()
			wg.Go(func() {
				for i := range each {
					l := w.lock(p.quorum())
					if i == 0 && w.Now() > time.Minute {
						t.Errorf("the first is in at %v", w.Now())
					}
					mu.Lock()
					if inside++; inside > 1 {
						t.Error("two are in")
					}
					tokens = append(tokens, l.Token())
					mu.Unlock()
					time.Sleep(time.Millisecond)
					mu.Lock()
					inside--
					mu.Unlock()
					redises.Release(t, l)
				}
			})
		}
		wg.Wait()
		if !slices.IsSorted(tokens) || len(slices.Compact(tokens)) != contenders*each {
			t.Error("the tokens do not grow")
		}
		if markers := w.markers(); !slices.Equal(markers, slices.Repeat([]string{"new"}, 5)) {
			t.Errorf("the markers are %q", markers)
		}
	})
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

// When two releases run at once, one of them does the work.
func TestQuorum_ReleaseTwiceAtOnce(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		l := w.lock(w.process().quorum())
		both := make(chan error)
		for range 2 {
			go func() { both <- l.Release(t.Context()) }()
		}
		if a, b := <-both, <-both; (a == nil) == (b == nil) || !errors.Is(errors.Join(a, b), holdfast.ErrReleased) {
			t.Errorf("%v, %v", a, b)
		}
	})
}

// A hold that lost one server and one Client is lost, and it gives back what is left.
func TestQuorum_ClosedAndLost(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.began()
		l := w.lock(p.quorum())
		ctx := l.Context(t.Context())
		p.Clients[0].Close()
		w.Servers[1].Del(name)
		time.Sleep(10*time.Second + 100*time.Millisecond)
		redises.WantEnded(t, l, ctx, holdfast.ErrLost)
		time.Sleep(time.Second)
		if w.Servers[2].Exists(name) {
			t.Error("it is still held by the Client that is open")
		}
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		time.Sleep(20 * time.Second) // the hold of the closed Client runs out
	})
}

// A lock ends because a majority of its Clients were closed. The other Clients renew their part no more,
// so that their part is free when the lease is over. With Release their part is free at once.
func TestQuorum_ClosedInPart(t *testing.T) {
	for _, released := range []bool{false, true} {
		play(t, 3, func(t *testing.T, w *stage) {
			p := w.began()
			q := p.quorum()
			l := w.lock(q)
			ctx := l.Context(t.Context())
			inner, err := q.Lock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(9 * time.Second)
			p.Clients[0].Close()
			synctest.Wait()
			redises.WantLive(t, l, ctx) // two are a majority
			p.Clients[1].Close()
			synctest.Wait()
			redises.WantEnded(t, l, ctx, holdfast.ErrClosed)
			_, err = q.Lock(t.Context())
			world.WantErr(t, err, holdfast.ErrClosed)
			if !w.Servers[2].Exists(name) {
				t.Error("it was given back under the work")
			}
			if !released {
				time.Sleep(21 * time.Second)
				w.WantHeldOn(0)
				world.WantErr(t, l.Release(t.Context()), holdfast.ErrClosed)
				return
			}
			for _, one := range []*quorum.Lease{l, l, inner} {
				time.Sleep(time.Second)
				if !w.Servers[2].Exists(name) {
					t.Error("it was given back under the work of another lease")
				}
				world.WantErr(t, one.Release(t.Context()), holdfast.ErrClosed)
			}
			time.Sleep(time.Second)
			if w.Servers[2].Exists(name) {
				t.Error("released, and still held by the Client that is open")
			}
			time.Sleep(20 * time.Second)
		})
	}
}

// One server's clock was far ahead, and then nobody locks for days. The token grows all the same.
func TestQuorum_TokenAheadOfTheClocks(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		last := int64(0)
		w.began()
		w.Servers[0].SetTime(time.Now().Add(9 * 24 * time.Hour))
		for _, days := range []int{0, 8, 2} {
			time.Sleep(time.Duration(days) * 24 * time.Hour)
			p := w.process()
			if days > 0 {
				p.Unplug(0)
			}
			l := w.lock(p.quorum())
			if l.Token() <= last {
				t.Errorf("after %d days: token %d after %d", days, l.Token(), last)
			}
			last = l.Token()
			redises.Release(t, l)
			for i, c := range p.Clients {
				c.Close() // so that nothing happens in the days to come
				p.Plug(i)
			}
		}
	})
}

// The members of a lock end at different times. The lock lasts as long as a majority of them, and its
// deadline says so. What has a longer MaxHold is not renewed after that.
func TestQuorum_DeadlineOfTheMajority(t *testing.T) {
	fixed := func(d time.Duration) holdfast.LeaseOption { return holdfast.Fixed(d * time.Second) }
	most := func(d time.Duration) holdfast.LeaseOption { return holdfast.MaxHold(d * time.Second) }
	for _, tc := range []struct {
		members  [3]holdfast.LeaseOption
		lasts    time.Duration
		deadline bool
		cause    error
	}{
		{[3]holdfast.LeaseOption{fixed(5), fixed(5), fixed(5)}, 5 * time.Second, true, holdfast.ErrLost},
		{[3]holdfast.LeaseOption{fixed(20), fixed(5), fixed(10)}, 10 * time.Second, true, holdfast.ErrLost},
		{[3]holdfast.LeaseOption{most(3), most(3), most(3)}, 3 * time.Second, false, holdfast.ErrMaxHold},
		{[3]holdfast.LeaseOption{most(3), most(3), most(60)}, 3 * time.Second, false, holdfast.ErrMaxHold},
	} {
		play(t, 3, func(t *testing.T, w *stage) {
			p := w.began()
			l := w.lock(holdfast.NewQuorumOf(name, p.Clients, lease.DefaultLease, func(c *holdfast.Client) holdfast.Locker {
				return c.Mutex(name, tc.members[slices.Index(p.Clients, c)])
			}))
			granted, ctx := w.Now(), l.Context(t.Context())
			if left := time.Until(l.Deadline()); tc.deadline && (left > tc.lasts || left < tc.lasts*9/10) {
				t.Errorf("%v left, want %v", left, tc.lasts)
			}
			<-l.Done()
			world.Within(t, "it lasted", w.Now()-granted, tc.lasts*9/10, tc.lasts)
			redises.WantEnded(t, l, ctx, tc.cause)
			if text := l.Err().Error(); tc.lasts == 5*time.Second && !strings.Contains(text, "fixed lease over after 5s") {
				t.Errorf("it does not say after how long: %s", text)
			}
			world.WantErr(t, l.Release(t.Context()), tc.cause)
			time.Sleep(28 * time.Second) // the keys stay for so long, as those of any lock
			w.WantHeldOn(0)
		})
	}
}

// A writer that only one server granted leaves a token there. A reader that has seen this token
// shows it to the resource. So the next reader, which other servers grant, must not have an older
// token.
func TestQuorum_TokensOfReadersDoNotGoBack(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.began()
		readers := holdfast.NewQuorumOf(name, p.Clients, lease.DefaultLease, func(c *holdfast.Client) holdfast.Locker {
			return c.RWMutex(name).RLocker()
		})
		left := time.Now().Add(time.Hour).UnixMicro()
		w.Servers[0].Set(tokenKey, strconv.FormatInt(left, 10))
		for _, down := range []int{2, 0} {
			p.Unplug(down)
			l := w.lock(readers)
			if l.Token() < left {
				t.Errorf("with server %d down: token %d after %d", down, l.Token(), left)
			}
			redises.Release(t, l)
			p.Plug(down)
		}
	})
}
