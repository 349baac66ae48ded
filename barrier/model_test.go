// This file checks random sequences of scripts against a plain model. -rapid.checks=100000 runs more
// of them.

package barrier

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// model is a plain model of a barrier for three parties.
type model struct {
	ends    []string       // of the generations: what a party is told, "0" while open
	arrived int            // in the newest
	parties map[string]int // the generation of each, from 0 on; -1 once it has left
	reply   map[string]string
}

func (m *model) open() bool { return len(m.ends) > 0 && m.ends[len(m.ends)-1] == "0" }

func (m *model) end(how string) { m.ends[len(m.ends)-1] = how }

// enter is one sending of an arrival. It returns the reply that the script must give.
func (m *model) enter(owner string) string {
	g, known := m.parties[owner]
	switch {
	case known && g < 0:
		return "0 0 0 5"
	case known && m.ends[g] == "0":
		return "1 " + m.reply[owner]
	case known:
		return "0 " + m.reply[owner] + " " + m.ends[g]
	}
	if !m.open() {
		m.ends, m.arrived = append(m.ends, "0"), 0
	}
	m.arrived++
	m.parties[owner] = len(m.ends) - 1
	m.reply[owner] = fmt.Sprintf("g%d %d", len(m.ends), 3-m.arrived)
	if m.arrived == 3 {
		m.end("1")
	}
	return m.enter(owner)
}

// release is one sending of a release, or what the end of a place does (over).
func (m *model) release(owner string, over bool) string {
	g, known := m.parties[owner]
	if known && g >= 0 && m.ends[g] == "0" {
		m.end("2")
	}
	if over {
		delete(m.parties, owner)
	} else {
		m.parties[owner] = -1
	}
	if known {
		return "1"
	}
	return "0"
}

func TestModel(t *testing.T) {
	redistest.Sequences(t)
	rdb := redistest.Mini(t).Client()
	rapid.Check(t, func(rt *rapid.T) {
		a := newAsker(t, rdb)
		m := &model{parties: map[string]int{}, reply: map[string]string{}}
		for i := range rapid.IntRange(1, 30).Draw(rt, "steps") {
			owner := fmt.Sprintf("party%d", rapid.IntRange(max(0, i-6), i).Draw(rt, "owner"))
			op := rapid.SampledFrom([]string{"enter", "enter", "enter", "enter", "release", "break", "lapse"}).Draw(rt, "op")
			want, command := "", op+" "+owner
			switch op {
			case "enter":
				command += " 3"
				want = m.enter(owner)
			case "release":
				want = m.release(owner, false)
			case "break":
				if len(m.ends) == 0 {
					continue
				}
				if command = fmt.Sprintf("break g%d", len(m.ends)); m.open() {
					m.end("2")
				}
				want = m.ends[len(m.ends)-1]
			case "lapse":
				if g, known := m.parties[owner]; !known || g < 0 || m.reply[owner] == "" || rdb.ZScore(t.Context(), "p", owner).Err() != nil {
					continue
				}
				a.Do("lapse " + owner)
				m.release(owner, true)
			}
			if op != "lapse" {
				if got := a.Ask(time.Minute, command); got != want {
					rt.Fatalf("%s: %q, want %q", command, got, want)
				}
			}
			for g, want := range m.ends {
				if got := a.Ask(time.Minute, fmt.Sprintf("look g%d", g+1)); got != want {
					rt.Fatalf("after %s a party of generation %d is told %q, want %q", command, g+1, got, want)
				}
			}
		}
	})
}
