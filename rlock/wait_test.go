// This file is about how goroutines wait for a lock, what they send meanwhile, and many that come at the same time.

package rlock_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

// A release is found by its message. Where the message does not come, the next poll finds it, and
// where Redis does not answer either, the wait goes on until it does.
func TestHowAWaiterFindsARelease(t *testing.T) {
	const poll, at = 1250 * time.Millisecond, 3*time.Second + 456*time.Millisecond
	release := func(w *world.World, held *holdfast.Lease, _ *world.Process) { w.Release(held) }
	for how, tc := range map[string]struct {
		free        func(w *world.World, held *holdfast.Lease, waiter *world.Process)
		least, most time.Duration
	}{
		"woken by the message": {release, 0, 5 * time.Millisecond},
		"no message":           {func(w *world.World, _ *holdfast.Lease, _ *world.Process) { w.Mini.Del(world.Name) }, 0, poll},
		"handed over, and no message": {func(w *world.World, _ *holdfast.Lease, _ *world.Process) {
			waiter := w.RDB.ZRange(w.T.Context(), queueKey, 0, 0).Val() // what follows is what a release does
			w.Mini.Del(world.Name)
			w.RDB.HSet(w.T.Context(), world.Name, waiter[0], 0)
			w.RDB.PExpire(w.T.Context(), world.Name, 2*time.Second)
		}, 0, poll},
		"outage": {func(w *world.World, held *holdfast.Lease, waiter *world.Process) {
			waiter.Unplug(true)
			w.Release(held)
			time.AfterFunc(17*time.Second, func() { waiter.Unplug(false) })
		}, 17 * time.Second, 18_300 * time.Millisecond}, // it redials within 1.2 s
	} {
		play(t, how, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			held := w.Lock(t.Context(), p.MyLock)
			a := w.GoLock(t.Context(), q.MyLock)
			w.At(at)
			tc.free(w, held, q)
			l := granted(t, a)
			world.Within(t, "in after", a.At-at, tc.least, tc.most)
			w.WantHolder(l.Owner(), 1)
			w.Release(l)
			_ = held.Release(t.Context())
			q.Net.Cut() // so the server learns that silent connections are dead
		})
	}
}

// A try that finds the lock held is one request that changes nothing, and its error names the lock as the program does.
func TestABusyTryIsOneRequestAndChangesNothing(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		mapper := holdfast.WithNameMapper(func(name string) string { return "app:{" + name + "}" })
		p, q := w.Process(mapper), w.Process(mapper)
		held := w.Lock(t.Context(), p.MyLock)
		before := w.Mini.Snapshot()
		err := second(q.MyLock.TryLock(t.Context()))
		world.WantErr(t, err, holdfast.ErrBusy)
		if !strings.Contains(err.Error(), `"myLock"`) {
			t.Errorf("%q does not name the key", err)
		}
		world.WantErr(t, second(q.Mutex("").TryLock(t.Context())), holdfast.ErrBadArgument)
		world.Equal(t, w.Mini.Snapshot(), before, "after:\n%s\nbefore:\n%s", before)
		time.Sleep(5 * time.Second)
		if runs, subscribed := q.Runs(""), q.Net.Count("SUBSCRIBE"); runs != 1 || subscribed != 0 {
			t.Errorf("%d requests, %d subscriptions", runs, subscribed)
		}
		w.Release(held)
	})
}

// A waiter that is told nothing looks, again and again, and its place stays. Once something has
// changed it enters: the lock is free, or its place is gone.
func TestAWaiterLooksWhileNothingChanges(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		held := w.Lock(t.Context(), q.MyLock)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		waiter := w.GoLock(ctx, p.MyLock)
		time.Sleep(3 * time.Second)
		entered, looked := p.Runs(world.EnterRun), p.Runs(world.LookRun)
		time.Sleep(time.Minute)
		world.Equal(t, p.Runs(world.EnterRun)-entered, 0, "it entered %d times in a minute in which nothing changed")
		if n := p.Runs(world.LookRun) - looked; n < 48 || n > 56 {
			t.Errorf("it looked %d times in a minute", n)
		}

		at := keys.Space("").FairLockAt(world.Name)
		w.RDB.Del(t.Context(), at.Queue, at.Alive)
		time.Sleep(2 * time.Second)
		world.Equal(t, p.Runs(world.EnterRun)-entered, 1, "after its place was lost it entered %d times")

		p.Mute()
		w.Release(held)
		l, err := waiter.Result()
		p.Unmute()
		must(t, err)
		w.Release(l)
	})
}

// The looks of one Client for many names go out together.
func TestLooksForManyNamesGoOutTogether(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		const n, polls = 320, 2
		p, q := w.Process(), w.Process()
		name := func(i int) string { return fmt.Sprintf("many:%d", i) }
		var leases []*lease.Lease
		var waiters []*world.Attempt
		for i := range n {
			leases = append(leases, w.Lock(t.Context(), q.Mutex(name(i), lease.Fixed(time.Hour))))
			waiters = append(waiters, w.GoLock(t.Context(), p.Mutex(name(i))))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(3 * time.Second)
		// Each reply takes a millisecond, in which every other look of the same instant comes.
		p.Each(func(world.Sending) redistest.Fault { return redistest.DelayReply(time.Millisecond) })
		before := p.Net.Count("EVALSHA")
		time.Sleep(polls * 1250 * time.Millisecond)
		// Of the 13 of an instant, some four go out alone, one on each connection, and the rest in one script: some 250 to
		// 330 scripts, as the goroutines happen to run. Without the grid, there is a script for each look.
		if sent := p.Net.Count("EVALSHA") - before; sent < polls || sent > n*polls*2/3 {
			t.Errorf("%d scripts for some %d looks", sent, n*polls)
		}
		p.Each(nil)
		w.Release(leases...)
		leases = leases[:0]
		for _, waiter := range waiters {
			l := granted(t, waiter)
			leases = append(leases, l)
		}
		synctest.Wait()
		slices.Reverse(leases)
		w.Release(leases...)
	})
}

// burst calls do for n goroutines at once, while the answers of the first calls are held back, so
// that the others queue. It returns how many scripts were sent.
func burst(w *world.World, p *world.Process, n int, do func(i int) *world.Attempt) (attempts []*world.Attempt, scripts int) {
	held := make(chan struct{})
	before := p.Net.Count("EVALSHA") + p.Net.Count("EVAL")
	p.Each(func(world.Sending) redistest.Fault { return redistest.HoldReply(held) })
	for i := range n {
		attempts = append(attempts, do(i))
		synctest.Wait()
	}
	p.Each(func(world.Sending) redistest.Fault { return redistest.Pass })
	close(held)
	for _, a := range attempts {
		granted(w.T, a)
	}
	return attempts, p.Net.Count("EVALSHA") + p.Net.Count("EVAL") - before
}

// Each lease of a burst is on a lock of its own, with an owner, a token and a time to live of its
// own; each release frees its own.
func TestABurstOfLocks(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		const n = 120
		p := w.Process()
		name := func(i int) string { return fmt.Sprintf("burst:%03d", i) }
		w.Release(w.Lock(t.Context(), p.MyLock)) // the connection knows the server's clock
		last := time.Now().Add(time.Hour).UnixMicro()
		for i := range n { // a token that is ahead of the clock is followed by the next number
			w.RDB.Set(t.Context(), keys.Space("").TokenAt(name(i)), last+int64(10*i), 0)
		}
		attempts, scripts := burst(w, p, n, func(i int) *world.Attempt {
			return w.GoLock(t.Context(), p.Mutex(name(i), lease.Renewed(30*time.Second)))
		})
		if scripts > n/3 {
			t.Errorf("%d locks were taken by %d scripts", n, scripts)
		}
		leases := make([]*lease.Lease, n)
		owners := make(map[string]bool)
		for i, a := range attempts {
			l := a.Lease
			leases[i] = l
			if got, want := w.Holders(name(i)), l.Owner().String()+"=1"; !slices.Equal(got, []string{want}) {
				t.Errorf("%s is held by %q, want %q", name(i), got, want)
			}
			owners[l.Owner().String()] = true
			token, want := w.RDB.Get(t.Context(), keys.Space("").TokenAt(name(i))).Val(), last+int64(10*i)+1
			if token != strconv.FormatInt(want, 10) || l.Token() != want {
				t.Errorf("%s has the token %d here and %s in Redis, want %d", name(i), l.Token(), token, want)
			}
			if ttl := w.PTTL(name(i)); ttl != 30*time.Second {
				t.Errorf("%s has a time to live of %v", name(i), ttl)
			}
		}
		world.Equal(t, len(owners), n, "%d owners")
		_, scripts = burst(w, p, n-1, func(i int) *world.Attempt {
			return w.Try(func() (*lease.Lease, error) { return nil, leases[i].Release(context.Background()) })
		})
		if scripts > n/3 {
			t.Errorf("%d locks were released by %d scripts", n-1, scripts)
		}
		for i := range n - 1 {
			if got := w.Holders(name(i)); got != nil {
				t.Errorf("%s is held by %q", name(i), got)
			}
		}
		if got := w.Holders(name(n - 1)); len(got) != 1 {
			t.Errorf("the lock that nobody has released is held by %q", got)
		}
		w.Release(leases[n-1])
	})
}
