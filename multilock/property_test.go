// Random histories of a quorum: two processes, cuts of the network, servers that
// lose their data. Nobody is ever in with another, tokens grow, and a try is
// granted when the model says that a majority is free and counts.

package multilock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/multilock"
)

// timeless hides the test's deadline, which is not in the bubble's time.
type timeless struct{ *testing.T }

func (timeless) Deadline() (time.Time, bool) { return time.Time{}, false }

// history is what has happened to the quorum.
type history struct {
	w         *world
	processes [2]*process
	holds     [2]*multilock.QuorumLease
	cut       [2][3]bool
	wiped     [3]time.Duration // when a server was last wiped, or 0
	last      int64
}

func TestQuorum_Histories(t *testing.T) {
	redistest.Sequences(t)
	play(t, 3, func(t *testing.T, w *world) {
		processes := [2]*process{w.began(), w.process()}
		time.Sleep(lengthOf)
		rapid.Check(timeless{t}, func(rt *rapid.T) {
			h := &history{w: w, processes: processes}
			defer h.over()
			rt.Repeat(map[string]func(*rapid.T){
				"try":     h.try,
				"release": h.release,
				"cut":     h.plug,
				"wipe":    h.wipe,
				"time": func(rt *rapid.T) {
					time.Sleep(time.Duration(rapid.IntRange(1, 40).Draw(rt, "ds")) * 100 * time.Millisecond)
				},
				"": h.check,
			})
		})
	})
}

func (h *history) try(rt *rapid.T) {
	i := rapid.IntRange(0, 1).Draw(rt, "process")
	if h.holds[i] != nil {
		rt.Skip()
	}
	synctest.Wait()
	other := h.holds[1-i]
	l, err := h.processes[i].quorum(holdfast.Renewed(lengthOf)).TryLock(h.w.t.Context())
	if err != nil {
		if other == nil && h.quiet(i) {
			rt.Fatalf("refused, with all of them up and free: %v", err)
		}
		return
	}
	synctest.Wait()
	if other != nil && other.Err() == nil {
		rt.Fatalf("granted while another believes to hold it")
	}
	if l.Token() <= h.last {
		rt.Fatalf("token %d after %d", l.Token(), h.last)
	}
	h.holds[i], h.last = l, l.Token()
}

// quiet reports whether nothing that has happened keeps process i out.
func (h *history) quiet(i int) bool {
	if h.w.heldOn() > 0 {
		return false
	}
	for s := range 3 {
		if h.cut[i][s] || h.wiped[s] != 0 {
			return false
		}
	}
	return true
}

func (h *history) release(rt *rapid.T) {
	i := rapid.IntRange(0, 1).Draw(rt, "process")
	if h.holds[i] == nil {
		rt.Skip()
	}
	_ = h.holds[i].Release(h.w.t.Context())
	h.holds[i] = nil
}

func (h *history) plug(rt *rapid.T) {
	i, s := rapid.IntRange(0, 1).Draw(rt, "process"), rapid.IntRange(0, 2).Draw(rt, "server")
	if h.cut[i][s] = !h.cut[i][s]; h.cut[i][s] {
		h.processes[i].unplug(s)
	} else {
		h.processes[i].plug(s)
	}
}

// wipe has a server lose its data, but never the last that has kept some: then
// the quorum would begin anew.
func (h *history) wipe(rt *rapid.T) {
	s, kept := rapid.IntRange(0, 2).Draw(rt, "server"), 0
	for other, server := range h.w.servers {
		if other != s && server.Exists(markerKey) {
			kept++
		}
	}
	if kept == 0 {
		rt.Skip()
	}
	h.w.restartEmpty(s)
	h.wiped[s] = h.w.now()
}

// check holds in every state: who has lost a majority was told in time.
func (h *history) check(rt *rapid.T) {
	synctest.Wait()
	believers := 0
	for _, l := range h.holds {
		if l == nil || l.Err() != nil {
			continue
		}
		believers++
		if left := time.Until(l.Deadline()); left <= 0 || left > lengthOf {
			rt.Fatalf("it lasts, and has %v left", left)
		}
	}
	if believers > 1 {
		rt.Fatal("two believe to hold it")
	}
}

// lengthOf is short, as rapid plays no more than a day: of a thousand histories
// each ends with three leases of quiet.
const lengthOf = 10 * time.Second

// over ends the history: everything is up, free, and counts.
func (h *history) over() {
	for i, p := range h.processes {
		for s := range 3 {
			p.plug(s)
		}
		if h.holds[i] != nil {
			_ = h.holds[i].Release(h.w.t.Context())
		}
	}
	time.Sleep(lengthOf)
	for _, p := range h.processes {
		if l, err := p.quorum(holdfast.Renewed(lengthOf)).TryLock(h.w.t.Context()); err == nil {
			_ = l.Release(h.w.t.Context()) // it has seen every marker
		}
	}
	time.Sleep(2 * lengthOf)
}
