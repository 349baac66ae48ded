// This file is about many goroutines that lock and release at the same time: scripts then carry many
// of their calls.

package rlock_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

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
		if len(owners) != n {
			t.Errorf("%d owners", len(owners))
		}
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
