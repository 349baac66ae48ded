// This file is about a striped lock: which stripe a key has, and the number of stripes that all agree on.

package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

// striped runs f on a Client of an embedded server, in a bubble.
func striped(t *testing.T, f func(t *testing.T, mini *redistest.MiniServer, client *holdfast.Client)) {
	redistest.Bubble(t, func(t *testing.T) {
		mini := redistest.Mini(t)
		client := holdfast.New(mini.Client())
		defer client.Close()
		f(t, mini, client)
	})
}

// lockOnce locks and releases the stripe of one key.
func lockOnce(t *testing.T, s *holdfast.Striped) error {
	return holdfast.Do(t.Context(), s.For("x"), func(context.Context) error { return nil })
}

// Every process finds the stripe of a key by the same rule: FNV-1a of 64 bits, mod n. The test uses
// the published vectors of that hash.
func TestTheRuleOfStripes(t *testing.T) {
	striped(t, func(t *testing.T, _ *redistest.MiniServer, client *holdfast.Client) {
		for key, hash := range map[string]uint64{
			"":       0xcbf29ce484222325,
			"a":      0xaf63dc4c8601ec8c,
			"foobar": 0x85944171f73967e8,
		} {
			for _, n := range []int{1, 7, 16, 1000} {
				want := fmt.Sprintf("stock:%d", hash%uint64(n))
				world.Equal(t, client.Striped("stock", n).For(key).Name(), want, "%s, want %s (%q of %d stripes)", want, key, n)
			}
		}
	})
}

// A stripe is the lock of the stripes' name and its number, and another stripe is another lock.
func TestStripesExclude(t *testing.T) {
	striped(t, func(t *testing.T, mini *redistest.MiniServer, client *holdfast.Client) {
		stock := client.Striped("stock", 16)
		l, other := clienttest.Grab(t, stock.At(3)), clienttest.Grab(t, stock.At(4))
		world.WantErr(t, second(stock.At(3).TryLock(t.Context())), holdfast.ErrBusy)
		world.WantErr(t, second(client.Mutex("stock:3").TryLock(t.Context())), holdfast.ErrBusy)
		again, err := stock.At(3).Lock(l.Context(t.Context()))
		must(t, err)
		clienttest.GiveBack(t, again, other, l)
	})
}

func TestAnotherNumberOfStripes(t *testing.T) {
	striped(t, func(t *testing.T, mini *redistest.MiniServer, client *holdfast.Client) {
		ctx := t.Context()
		must(t, lockOnce(t, client.Striped("stock", 16)))
		before := mini.Snapshot()
		for _, n := range []int{8, 17} {
			_, err := client.Striped("stock", n).For("x").Lock(ctx)
			_, try := client.Striped("stock", n).At(0).TryLock(ctx)
			if !errors.Is(err, holdfast.ErrBadArgument) || !errors.Is(try, holdfast.ErrBadArgument) {
				t.Errorf("%d stripes: %v, %v", n, err, try)
			}
		}
		if after := mini.Snapshot(); after != before {
			t.Errorf("changed\n%s\nto\n%s", before, after)
		}
		if err := lockOnce(t, client.Striped("stock", 16)); err != nil {
			t.Errorf("the number agreed on: %v", err)
		}
	})
}

func TestBadStripes(t *testing.T) {
	striped(t, func(t *testing.T, _ *redistest.MiniServer, client *holdfast.Client) {
		for _, s := range []*holdfast.Striped{
			client.Striped("stock", 0), client.Striped("stock", -1), client.Striped("stock", 1<<20),
			client.Striped("", 16), client.Striped("holdfast_x", 16), holdfast.New(nil).Striped("stock", 16),
		} {
			world.WantErr(t, second(s.For("x").Lock(t.Context())), holdfast.ErrBadArgument)
			world.WantErr(t, second(s.For("x").TryLock(t.Context())), holdfast.ErrBadArgument)
		}
	})
}

// When Redis has lost the number of stripes, a process that goes on locking writes the number down again.
func TestALostNumberOfStripesIsRestored(t *testing.T) {
	striped(t, func(t *testing.T, mini *redistest.MiniServer, client *holdfast.Client) {
		stock := client.Striped("stock", 8)
		must(t, lockOnce(t, stock))
		mini.FlushAll()
		time.Sleep(time.Minute + time.Second)
		must(t, lockOnce(t, stock))
		synctest.Wait()
		if n, _ := mini.Get("holdfast_stripes:stock"); n != "8" {
			t.Errorf("the number is %q", n)
		}
		_, err := client.Striped("stock", 16).For("x").TryLock(t.Context())
		redistest.Is(t, "another number", err, holdfast.ErrBadArgument)
	})
}

// A process finds that others have agreed on another number of stripes. It locks no more until the
// number is its own again.
func TestAnotherNumberOfStripesIsNoticed(t *testing.T) {
	striped(t, func(t *testing.T, mini *redistest.MiniServer, client *holdfast.Client) {
		stock := client.Striped("stock", 8)
		must(t, lockOnce(t, stock))
		mini.Set("holdfast_stripes:stock", "16")
		time.Sleep(time.Minute + time.Second)
		_ = lockOnce(t, stock) // beside this lock the process asks for the number
		synctest.Wait()
		for range 2 {
			redistest.Is(t, "with another number", lockOnce(t, stock), holdfast.ErrBadArgument)
		}
		mini.Set("holdfast_stripes:stock", "8")
		must(t, lockOnce(t, stock))
	})
}

// A process that cannot ask for the number of stripes again locks its stripes all the same.
func TestStripesGoOnWithoutTheirNumber(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		mini := redistest.Mini(t)
		net := mini.Proxy()
		client := holdfast.New(net.Client(t))
		defer client.Close()
		stock := client.Striped("stock", 8)
		must(t, lockOnce(t, stock))
		net.OnCommand(func(c redistest.Command) redistest.Fault {
			if slices.Contains(c.Args, "holdfast_stripes:stock") {
				return redistest.ReplyError("CLUSTERDOWN the master of this slot is away")
			}
			return redistest.Pass
		})
		for range 5 {
			time.Sleep(time.Minute + time.Second)
			began := time.Now()
			if err := lockOnce(t, stock); err != nil || time.Since(began) > 0 {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		}
		net.OnCommand(nil)
	})
}

// Before its first lock a stripe asks Redis for the number of stripes. If Redis does not answer, a try
// ends alone, and a call whose context ends says why.
func TestAStripeWhoseNumberCannotBeAskedFor(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		p.Unplug(true)
		mine := errors.New("mine")
		ctx, cancel := context.WithCancelCause(context.Background())
		a := w.Try(func() (*lease.Lease, error) { return p.Striped("stock", 8).At(0).TryLock(ctx) })
		waits := w.GoLock(ctx, p.Striped("stock", 8).At(0))
		w.At(4 * time.Second)
		if a.Pending() {
			t.Error("still waits after 4 s")
		}
		cancel(mine)
		world.WantErr(t, second(a.Result()), holdfast.ErrUnavailable)
		world.WantErr(t, second(waits.Result()), mine)
		p.Unplug(false)
	})
}
