// This file is about Grace and nested leases: the key stays until the last of them is released.

package rlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// A nested Lock is under way when the outer lease ends, and fails with it. The key stays all the same: for its
// grace, or as after each MaxHold and each fixed lease, until a Release frees it.
func TestGrace_ANestedLockIsUnderWay(t *testing.T) {
	for what, tc := range map[string]struct {
		options []holdfast.LeaseOption
		cause   error
	}{
		"a grace":    {[]holdfast.LeaseOption{holdfast.Grace(grace)}, holdfast.ErrLost},
		"a MaxHold":  {[]holdfast.LeaseOption{holdfast.MaxHold(5 * time.Second)}, holdfast.ErrMaxHold},
		"both fixed": {[]holdfast.LeaseOption{holdfast.Fixed(20 * time.Second), holdfast.Grace(grace)}, holdfast.ErrExpired},
	} {
		for _, when := range []string{"released afterwards", "released meanwhile", "not released"} {
			play(t, what+", "+when, func(t *testing.T, w *world.World) {
				p := w.Process()
				m := p.Mutex(world.Name, tc.options...)
				outer := w.Lock(t.Context(), m)
				p.Unplug(true)
				entered := w.GoLock(outer.Context(t.Context()), m)
				<-outer.Done()
				if when == "released meanwhile" {
					world.WantErr(t, outer.Release(t.Context()), tc.cause)
				}
				_, err := entered.Result()
				world.WantErr(t, err, tc.cause)
				p.Unplug(false)
				w.At(w.Now() + 2*time.Second)
				if when != "released meanwhile" {
					w.WantHolder(outer.Owner(), 1)
				}
				switch when {
				case "released afterwards":
					world.WantErr(t, outer.Release(t.Context()), tc.cause)
					synctest.Wait()
				case "not released":
					w.At(w.Now() + time.Minute)
				}
				w.WantFree()
			})
		}
	}
}

// Nested leases end together. The key stays until each of them is released: work may go on under the other.
func TestGrace_TheKeyStaysForTheOuterLease(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		m := p.Mutex(world.Name, holdfast.Grace(grace))
		outer := w.Lock(t.Context(), m)
		inner := w.Lock(outer.Context(t.Context()), m)
		early := w.Lock(outer.Context(t.Context()), m)
		must(t, early.Release(t.Context()))
		p.Unplug(true)
		<-outer.Done()
		p.Unplug(false)
		world.WantErr(t, early.Release(t.Context()), holdfast.ErrReleased)
		for range 2 {
			world.WantErr(t, inner.Release(t.Context()), holdfast.ErrLost)
			w.At(w.Now() + time.Second)
			w.WantHolder(outer.Owner(), 2)
		}
		world.WantErr(t, outer.Release(t.Context()), holdfast.ErrLost)
		synctest.Wait()
		w.WantFree()
	})
}
