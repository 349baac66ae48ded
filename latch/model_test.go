// This file checks random sequences of scripts against a plain model. -rapid.checks=100000 runs
// more of them.

package latch

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// model is a plain model of a latch: a count, and how each generation ended.
type model struct {
	count int
	ends  []string       // of the generations: what a waiter is told, "0" while open
	calls map[int]string // the reply to each call that took effect
	last  map[int]int    // the last call on each track
}

// send is one sending of a call. It returns the reply that the script must give.
func (m *model) send(op string, track, number, n int) string {
	switch {
	case m.last[track] > number:
		return "0"
	case m.last[track] == number:
		return m.calls[number]
	}
	reply := "0 0"
	switch op {
	case "set":
		if m.count == 0 {
			m.count, reply = n, "1 0"
			m.ends = append(m.ends, "0")
		}
	case "countdown":
		if m.count == 1 {
			m.ends[len(m.ends)-1] = "1"
		}
		m.count = max(m.count-1, 0)
		reply = "1 " + itoa(m.count)
	case "delete":
		if m.count > 0 {
			m.count, reply = 0, "1 0"
			m.ends[len(m.ends)-1] = "2"
		}
	}
	m.last[track], m.calls[number] = number, reply
	return reply
}

func TestModel(t *testing.T) {
	redistest.Sequences(t)
	rdb := redistest.Mini(t).Client()
	rapid.Check(t, func(rt *rapid.T) {
		rdb.FlushAll(t.Context())
		a := asker{t, rdb}
		m := &model{calls: make(map[int]string), last: make(map[int]int)}
		type sending struct {
			op               string
			track, number, n int
		}
		var sent []sending
		var generations []string // by their numbers
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			s := sending{
				op:     rapid.SampledFrom([]string{"set", "set", "countdown", "countdown", "countdown", "delete"}).Draw(rt, "op"),
				track:  rapid.IntRange(0, 2).Draw(rt, "track"),
				number: len(sent) + 1,
				n:      rapid.IntRange(1, 3).Draw(rt, "n"),
			}
			if len(sent) > 0 && rapid.IntRange(0, 2).Draw(rt, "again") == 0 {
				s = rapid.SampledFrom(sent).Draw(rt, "which") // sent again, perhaps late
			} else {
				sent = append(sent, s)
			}
			track := itoa(s.track) + " " + itoa(s.number)
			run := map[string]step{
				"set": set(track, s.n, 0, "", ""), "countdown": countDown(track, "", ""), "delete": remove(track, "", ""),
			}[s.op]
			want := m.send(s.op, s.track, s.number, s.n)
			if got := a.ask(time.Minute, run); got != want {
				rt.Fatalf("%+v: %q, want %q", s, got, want)
			}
			if len(m.ends) > len(generations) {
				generations = append(generations, a.newest())
			}
			for i, number := range generations {
				want := m.ends[i]
				if want == "0" {
					want = "0 gen -1"
				}
				if got := a.ask(time.Minute, look(number, "", "")); got != want {
					rt.Fatalf("%+v: a waiter for generation %d is told %q, want %q", s, i, got, want)
				}
			}
			if count, _ := rdb.Get(t.Context(), "l").Int(); count != m.count {
				rt.Fatalf("%+v leaves %d, want %d", s, count, m.count)
			}
		}
	})
}
