// A server restarts without its data while one process is in the middle of a round and another
// begins the quorum.

package quorum_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/quorum"
)

// try begins a TryLock of the process. wait returns the lease when it has ended, nil if it was refused.
func (w *stage) try(p *process) (wait func() *quorum.Lease) {
	granted := make(chan *quorum.Lease, 1)
	go func() {
		l, err := p.quorum().TryLock(w.T.Context())
		if err != nil {
			w.T.Logf("refused at %v: %v", w.Now(), err)
			l = nil
		}
		granted <- l
	}()
	return func() *quorum.Lease { return <-granted }
}

// wantOne checks that no two of the leases last, and releases them.
func (w *stage) wantOne(leases ...*quorum.Lease) {
	w.T.Helper()
	synctest.Wait()
	last := 0
	for _, l := range leases {
		if l != nil && l.Err() == nil {
			last++
		}
	}
	if last != 1 {
		w.T.Errorf("%d hold the lock at %v", last, w.Now())
	}
	for _, l := range leases {
		if l != nil {
			_ = l.Release(w.T.Context())
		}
	}
}

// A has been granted the lock by servers 0 and 1 of a new quorum, and has not yet asked for their
// markers. Server 0 restarts without its data, and B begins the quorum. The marker that A then finds
// on server 0 is of after the restart, so it does not vouch for what A was granted before.
func TestQuorum_AmnesiaBetweenTheGrantAndTheMarker(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		a, b := w.process(), w.process()
		a.delay(0, delayed{markerKey, "empty", 50 * time.Millisecond})
		a.delay(1, delayed{markerKey, "empty", 50 * time.Millisecond})
		a.delay(2, delayed{name, "", 300 * time.Millisecond})
		first := w.try(a)
		time.Sleep(10 * time.Millisecond)
		w.RestartEmpty(0)
		second := w.try(b)()
		w.wantOne(second, first())
	})
}

// A begins a quorum, and marks only server 0. In its next round it is granted the lock there, and by
// server 1, for whose marker it has not asked yet. Server 0 restarts without its data, so all servers
// are empty, and B begins the quorum. That server 1 counts then says nothing of server 0 for A.
func TestQuorum_BeginsAgainWhileARoundIsUnderWay(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		a, b := w.process(), w.process()
		a.delay(1, delayed{markerKey, "new", 700 * time.Millisecond})
		a.delay(2, delayed{markerKey, "new", 700 * time.Millisecond})
		first := w.try(a)
		time.Sleep(400 * time.Millisecond)
		a.delay(1, delayed{markerKey, "empty", 100 * time.Millisecond})
		a.Nets[2].OnCommand(func(c redistest.Command) redistest.Fault {
			if len(c.Args) > 3 && c.Args[3] == tokenKey { // it asks for the lock
				return redistest.Delay(300 * time.Millisecond)
			}
			return redistest.Pass
		})
		time.Sleep(120 * time.Millisecond)
		if markers := w.markers(); !slices.Equal(markers, []string{"new", "empty", "empty"}) || w.HeldOn() != 2 {
			t.Fatalf("the markers are %q, and it is held on %d", markers, w.HeldOn())
		}
		w.RestartEmpty(0)
		second := w.try(b)()
		w.wantOne(second, first())
	})
}
