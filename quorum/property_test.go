// This file plays random histories of a quorum: two processes, cuts of the network, servers that
// lose their data, and other quorums on some of the same servers. Two processes are never in at the
// same time, tokens grow, and a try is granted when all servers are up, free, and count.

package quorum_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/rapidtest"
	"github.com/holdfast-go/holdfast/internal/test/redises"
	"github.com/holdfast-go/holdfast/quorum"
)

// The quorum is on the first three servers. Its neighbours are on any three of the five.
const historyServers, quorumServers = 5, 3

// history records what has happened to the quorum.
type history struct {
	w         *stage
	processes [2]*process
	holds     [2]*quorum.Lease
	cut       [2][quorumServers]bool
	wiped     [quorumServers]time.Duration // when each server was last wiped, or 0
	last      int64
}

func TestQuorum_Histories(t *testing.T) {
	play(t, historyServers, func(t *testing.T, w *stage) {
		processes := [2]*process{w.process(), w.process()}
		redises.Release(t, w.lock(processes[0].main()))
		time.Sleep(lengthOf)
		rapidtest.CheckOneIn(t, 30, func(rt *rapid.T) { // each takes a tenth of a second
			h := &history{w: w, processes: processes}
			defer h.over()
			rt.Repeat(map[string]func(*rapid.T){
				"try": h.try, "release": h.release, "cut": h.plug, "wipe": h.wipe, "neighbour": h.neighbour, "time": rapidtest.Moments, "": h.check,
			})
		})
	})
}

// main returns the quorum as process p has it.
func (p *process) main() *quorum.Quorum {
	return holdfast.NewQuorum(name, p.Clients[:quorumServers], holdfast.Renewed(lengthOf))
}

func (h *history) try(rt *rapid.T) {
	i := rapid.IntRange(0, 1).Draw(rt, "process")
	if h.holds[i] != nil {
		rt.Skip()
	}
	synctest.Wait()
	other := h.holds[1-i]
	l, err := h.processes[i].main().TryLock(h.w.T.Context())
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

// quiet reports whether nothing in the history keeps process i out.
func (h *history) quiet(i int) bool {
	if h.w.HeldOn() > 0 {
		return false
	}
	for s := range quorumServers {
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
	_ = h.holds[i].Release(h.w.T.Context())
	h.holds[i] = nil
}

func (h *history) plug(rt *rapid.T) {
	i, s := rapid.IntRange(0, 1).Draw(rt, "process"), rapid.IntRange(0, quorumServers-1).Draw(rt, "server")
	if h.cut[i][s] = !h.cut[i][s]; h.cut[i][s] {
		h.processes[i].Unplug(s)
	} else {
		h.processes[i].Plug(s)
	}
}

// wipe makes servers lose their data. At least one server of the quorum keeps its data: without any
// such server the quorum would begin anew.
func (h *history) wipe(rt *rapid.T) {
	servers := rapid.Permutation([]int{0, 1, 2, 3, 4}).Draw(rt, "servers")[:rapid.IntRange(1, 4).Draw(rt, "how many")]
	kept := 0
	for s := range quorumServers {
		if h.kept(s) && !slices.Contains(servers, s) {
			kept++
		}
	}
	if kept == 0 {
		rt.Skip()
	}
	for _, s := range servers {
		if s < quorumServers {
			h.wiped[s] = h.w.Now()
		}
		h.w.RestartEmpty(s)
	}
}

// kept reports whether the server counts: either it has kept its data, or it has had a marker for
// as long as the longest lease.
func (h *history) kept(s int) bool {
	marker, err := h.w.Servers[s].Get(markerKey)
	if err != nil || strings.HasPrefix(marker, "empty:") {
		return false
	}
	at, err := strconv.ParseInt(strings.Split(marker, ":")[1], 10, 64)
	return err == nil && (h.wiped[s] == 0 || time.Since(time.UnixMicro(at)) > lengthOf)
}

// neighbour locks another quorum that has some servers in common with this one.
func (h *history) neighbour(rt *rapid.T) {
	servers := rapid.Permutation([]int{0, 1, 2, 3, 4}).Draw(rt, "servers")[:3]
	i := rapid.IntRange(0, 1).Draw(rt, "process")
	clients := make([]*holdfast.Client, 0, len(servers))
	for _, s := range servers {
		clients = append(clients, h.processes[i].Clients[s])
	}
	l, err := holdfast.NewQuorum("another", clients, holdfast.Renewed(lengthOf)).TryLock(h.w.T.Context())
	if err != nil {
		return
	}
	if err := l.Release(h.w.T.Context()); err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
		rt.Fatalf("the neighbour's release: %v", err)
	}
}

// check holds in every state: a holder that has lost a majority was told in time.
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

// lengthOf is short, because rapid plays no more than a day, and each of a thousand histories ends
// with three leases of quiet.
const lengthOf = 10 * time.Second

// over ends the history: afterwards every server is up, is free, and counts.
func (h *history) over() {
	for i, p := range h.processes {
		for s := range quorumServers {
			p.Plug(s)
		}
		if h.holds[i] != nil {
			_ = h.holds[i].Release(h.w.T.Context())
		}
	}
	time.Sleep(lengthOf)
	for _, p := range h.processes {
		if l, err := p.main().TryLock(h.w.T.Context()); err == nil {
			_ = l.Release(h.w.T.Context()) // this try has seen every marker
		}
	}
	time.Sleep(2 * lengthOf)
}
