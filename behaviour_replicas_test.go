// This file tests the replicated tier in virtual time: what a holder's calls do when too few
// replicas acknowledge.

package holdfast_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// replicated starts a process that requires one replica, and returns the number of replicas that
// acknowledge.
func (w *world) replicated(options ...holdfast.Option) (*process, *atomic.Int64) {
	acknowledge := new(atomic.Int64)
	acknowledge.Store(1)
	p := w.process(append(options, holdfast.WithReplicas(1))...)
	p.net.OnCommand(func(c redistest.Command) redistest.Fault {
		if c.Name == "WAIT" {
			return redistest.ReplyNumber(acknowledge.Load())
		}
		return p.observe(c)
	})
	return p, acknowledge
}

// A call on a lease does not count if too few replicas acknowledge it. The lease that was granted
// before stays as it was.
func TestReplicas_EachCallOfAHolder(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, acknowledge := w.replicated()
		l := w.lock(t.Context(), p.mutex)
		deadline := l.Deadline()

		acknowledge.Store(0)
		inner, err := p.mutex.Lock(l.Context(t.Context()))
		wantErr(t, err, holdfast.ErrNotReplicated)
		if inner != nil {
			t.Error("a nested lease beside the error")
		}
		wantErr(t, l.Extend(t.Context(), time.Hour), holdfast.ErrNotReplicated)
		if got := l.Deadline(); !got.Equal(deadline) {
			t.Errorf("the deadline went by %v", got.Sub(deadline))
		}
		if err := l.Err(); err != nil {
			t.Errorf("the lease has ended: %v", err)
		}

		acknowledge.Store(1)
		w.release(w.lock(l.Context(t.Context()), p.mutex))
		if err := l.Extend(t.Context(), time.Minute); err != nil || !l.Deadline().After(deadline) {
			t.Errorf("Extend: %v, the deadline went by %v", err, l.Deadline().Sub(deadline))
		}
		w.release(l)
	})
}

func TestReplicas_Attach(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, _ := w.replicated()
		q, acknowledge := w.replicated()
		owner, err := w.lock(t.Context(), p.mutex).Detach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		acknowledge.Store(0)
		if l, err := q.mutex.Attach(t.Context(), owner); l != nil {
			t.Error("attached on the master's word alone")
		} else {
			wantErr(t, err, holdfast.ErrNotReplicated)
		}
		time.Sleep(2 * time.Second) // the hold is moved back
		acknowledge.Store(1)
		l, err := q.mutex.Attach(t.Context(), owner)
		if err != nil {
			t.Fatal(err)
		}
		w.release(l)
	})
}

// Detach leaves a whole lease, so that there is time to attach.
func TestDetachLeavesAWholeLease(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l := w.lock(t.Context(), p.Mutex(name, holdfast.Renewed(30*time.Second)))
		time.Sleep(9 * time.Second) // just before the lease is renewed
		owner, err := l.Detach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if left := w.rdb.PTTL(t.Context(), name).Val(); left != 30*time.Second {
			t.Errorf("%v are left", left)
		}
		l, err = p.mutex.Attach(t.Context(), owner)
		if err != nil {
			t.Fatal(err)
		}
		w.release(l)
	})
}
