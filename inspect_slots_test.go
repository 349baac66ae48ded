// These tests show what Inspect says of numbered slots.

package holdfast_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/slots"
)

func TestInspect_Slots(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		const size = 3
		a, b := known(t, mini, "pod-1"), known(t, mini, "pod-2")
		defer a.Close()
		defer b.Close()
		wantKind(t, inspected(t, c, "{b}x"), holdfast.KindFree, 0)
		zero, err := a.Slots("{b}x", size).TryAcquire(t.Context())
		must(t, err)
		one, err := b.Slots("{b}x", size, slots.Quarantine(time.Hour), slots.Lease(holdfast.Renewed(10*time.Second))).TryAcquire(t.Context())
		must(t, err)
		two, err := a.Slots("{b}x", size).TryAcquire(t.Context())
		must(t, err)
		defer background(t, func(ctx context.Context) { _, _ = c.Slots("{b}x", size).Acquire(ctx) })()
		time.Sleep(2 * time.Second)

		i := inspected(t, c, "{b}x")
		if wantKind(t, i, holdfast.KindSlots, 3); i.Value != 0 || i.Taken != 3 || i.All != size || i.Waiters != 1 || len(i.Queue) != 1 {
			t.Errorf("%v", i)
		}
		for n, slot := range []slots.Slot{zero, one, two} {
			if h := i.Holders[n]; h.Number != n || h.Owner != slot.Owner() || h.Who != fmt.Sprint("pod-", 1+n%2) || h.Quarantined {
				t.Errorf("%d: %v, %q", n, h, h.Who)
			}
		}
		must(t, b.Close()) // its number is not renewed any more
		time.Sleep(15 * time.Second)
		must(t, zero.Release(t.Context()))
		time.Sleep(2 * time.Second) // c has that
		all := allOf(t, c, "{b}*")
		if i = all["{b}x"]; len(all) != 1 || len(i.Holders) != 3 {
			t.Fatalf("%v", all)
		}
		for n, quarantined := range []bool{false, true, false} {
			if h := i.Holders[n]; h.Number != n || h.Quarantined != quarantined {
				t.Errorf("%d: %v", n, h)
			}
		}
		if left := i.Holders[1].Remaining; left < 59*time.Minute || left > time.Hour {
			t.Errorf("the quarantine ends in %v", left)
		}
		must(t, two.Release(t.Context()))
	})
}

// More numbers are taken than one call looks at.
func TestInspect_ManySlots(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client, c *holdfast.Client) {
		const n = 700
		back := float64(time.Now().Add(time.Minute).UnixMilli())
		for i := range n {
			number := 3 * i
			rdb.ZAdd(t.Context(), "holdfast_slots:{x}", redis.Z{Score: back, Member: fmt.Sprint(number)},
				redis.Z{Score: float64(int64(number)<<37 - 1<<53), Member: javaHolder()})
		}
		rdb.ZAdd(t.Context(), "holdfast_slots:{x}", redis.Z{Score: 1<<52 + 65536, Member: "size"})
		i := inspected(t, c, "x")
		if wantKind(t, i, holdfast.KindSlots, n); i.Value != 65536-n || i.Taken != n || i.All != 65536 {
			t.Errorf("%v", i)
		}
		for k, h := range i.Holders {
			if h.Number != 3*k || h.Remaining != time.Minute {
				t.Fatalf("%d: number %d, %v left", k, h.Number, h.Remaining)
			}
		}
	})
}
