// What a MultiLock promises when some of its servers are frozen, on real ones.

package multilock_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redises"
)

// Servers are frozen, one set after the other: a MultiLock is granted by all of them alone, and what the
// others granted is free again.
func TestAllOfFiveServers(t *testing.T) {
	servers, clients := redises.Real(t, 5)
	var lockers []holdfast.Locker
	for _, c := range clients() {
		lockers = append(lockers, c.Mutex(redises.Name))
	}
	m := holdfast.NewMultiLock(lockers...)
	for _, mask := range []int{0b11111, 0b01111, 0b10101, 0b00111, 0b11000, 0b00001} {
		redises.FreezeAllBut(servers, mask)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		if mask == 0b11111 {
			ctx = clienttest.Generous(t)
		}
		l, err := m.Lock(ctx)
		cancel()
		if (err == nil) != (mask == 0b11111) {
			t.Errorf("%05b: %v", mask, err)
		}
		if err == nil {
			redises.Release(t, l)
		}
		redises.Free(t, servers, mask)
		for _, s := range servers {
			s.Thaw()
		}
		redises.Free(t, servers, 0b11111)
	}
}
