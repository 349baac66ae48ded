// What the scenes of this package share.

package rlock_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

// play plays a scene as a subtest.
func play(t *testing.T, what string, scene func(t *testing.T, w *world.World)) {
	t.Helper()
	t.Run(what, func(t *testing.T) { world.Play(t, scene) })
}

// must ends the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// granted waits for an attempt, and returns its lease.
func granted(t *testing.T, a *world.Attempt) *lease.Lease {
	t.Helper()
	l, err := a.Result()
	must(t, err)
	return l
}

// second returns the error of a call that also returns a lease.
func second(_ *holdfast.Lease, err error) error { return err }

func detach(t *testing.T, l *lease.Lease) lease.Owner {
	t.Helper()
	owner, err := l.Detach(t.Context())
	must(t, err)
	return owner
}

func attach(t *testing.T, m interface {
	Attach(context.Context, lease.Owner) (*lease.Lease, error)
}, owner lease.Owner) *lease.Lease {
	t.Helper()
	l, err := m.Attach(t.Context(), owner)
	must(t, err)
	return l
}
