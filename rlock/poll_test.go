// This file is about what a waiter sends while nothing changes.

package rlock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

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
		if n := p.Runs(world.EnterRun) - entered; n != 0 {
			t.Errorf("it entered %d times in a minute in which nothing changed", n)
		}
		if n := p.Runs(world.LookRun) - looked; n < 48 || n > 56 {
			t.Errorf("it looked %d times in a minute", n)
		}

		at := keys.Space("").FairLockAt(world.Name)
		w.RDB.Del(t.Context(), at.Queue, at.Alive)
		time.Sleep(2 * time.Second)
		if n := p.Runs(world.EnterRun) - entered; n != 1 {
			t.Errorf("after its place was lost it entered %d times", n)
		}

		p.Mute()
		w.Release(held)
		l, err := waiter.Result()
		p.Unmute()
		if err != nil {
			t.Fatal(err)
		}
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
		p.Each(func(world.Sending) redistest.Fault {
			return redistest.DelayReply(time.Millisecond)
		})
		before := p.Net.Count("EVALSHA")
		time.Sleep(polls * 1250 * time.Millisecond)
		if sent := p.Net.Count("EVALSHA") - before; sent < polls || sent > n*polls/2 {
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
