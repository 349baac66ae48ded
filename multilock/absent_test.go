// This test is about the leases that a failed Lock returns.

package multilock_test

import (
	"testing"

	"github.com/holdfast-go/holdfast"
)

// A program may defer Release before it looks at the error of Lock, whatever it locks.
func TestADeferredReleaseAfterAFailedLock(t *testing.T) {
	want := (*holdfast.Lease)(nil).Release(t.Context()).Error()
	all, err := holdfast.NewMultiLock().Lock(t.Context())
	if err == nil || all.Release(t.Context()).Error() != want || all.Err() == nil || !all.Deadline().IsZero() {
		t.Errorf("a MultiLease: %v, %v", err, all.Release(t.Context()))
	}
	most, err := holdfast.NewQuorum("q", nil).Lock(t.Context())
	if err == nil || most.Release(t.Context()).Error() != want || most.Err() == nil || !most.Deadline().IsZero() {
		t.Errorf("a QuorumLease: %v, %v", err, most.Release(t.Context()))
	}
}
