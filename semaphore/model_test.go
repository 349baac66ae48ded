// This file checks random sequences of scripts against plain models. -rapid.checks=100000 runs more
// of them.

package semaphore

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// call is one call on a track, as its Client knows it.
type call struct {
	number int
	op     string
	args   []any
	reply  string // "" until the call has taken effect
	from   int    // the number of the semaphore that it took from
}

// counting is a plain model of a counting semaphore.
type counting struct {
	exists bool
	free   int
	all    int          // 0: not known
	made   int          // how many semaphores have been made, this one included
	given  bool         // giving back permits made it
	tracks map[int]call // the last call that took effect
}

// send is one sending of a call. It returns the reply that the script must give.
func (m *counting) send(track int, c call) string {
	last, ok := m.tracks[track]
	switch {
	case ok && last.number > c.number:
		return "0"
	case ok && last.number == c.number && c.op != "cancel":
		return last.reply
	case ok && last.number == c.number && last.reply == "0 0":
		return "0 0"
	}
	n := 0
	if len(c.args) > 0 {
		n = c.args[0].(int)
	}
	switch c.op {
	case "take":
		switch { // such a refusal is not recorded
		case !m.exists:
			return "0 1"
		case m.free < n && m.all > 0 && n > m.all:
			return "0 2"
		case m.free < n:
			return "0 0"
		}
		m.free -= n
		c.reply, c.from = "1", m.made
	case "cancel":
		if ok && last.number == c.number && m.exists && last.from == m.made {
			m.free += n
			if m.all > 0 {
				m.all = max(m.all, m.free)
			}
		}
		c.reply = "0 0"
	case "give":
		m.free += n
		switch changes := c.args[3] == 1; {
		case !m.exists && changes:
			m.begin(m.free)
		case !m.exists:
			m.all, m.exists, m.given = 0, true, true
		case changes && !m.given && m.free-n > m.all: // all was not known
			m.all = 0
		case changes && !m.given:
			m.all = max(m.all+n, 0)
		case m.all > 0:
			m.all = max(m.all, m.free)
		}
		c.reply = fmt.Sprintf("1 %d", m.free)
	case "begin":
		if m.exists {
			c.reply = "0 0"
			break
		}
		m.free = n
		m.begin(n)
		c.reply = fmt.Sprintf("1 %d", n)
	case "delete":
		m.free, m.exists = 0, false
		return ""
	case "drain":
		taken := max(m.free, 0)
		m.free -= taken
		c.reply = fmt.Sprintf("1 %d", taken)
	}
	m.tracks[track] = c
	return c.reply
}

// begin makes the semaphore anew.
func (m *counting) begin(all int) {
	m.all, m.exists, m.given = max(all, 0), true, false
	m.made++
}

func TestCountingModel(t *testing.T) {
	redistest.Sequences(t)
	rdb := redistest.Mini(t).Client()
	rapid.Check(t, func(rt *rapid.T) {
		rdb.FlushAll(t.Context())
		a := asker{t, rdb}
		m := &counting{tracks: make(map[int]call)}
		var sent []struct {
			track int
			call  call
		}
		numbers := 0
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			track := rapid.IntRange(0, 2).Draw(rt, "track")
			var c call
			switch kind := rapid.IntRange(0, 9).Draw(rt, "kind"); {
			case kind < 3 && len(sent) > 0: // an earlier call is sent again, perhaps late
				again := rapid.SampledFrom(sent).Draw(rt, "again")
				track, c = again.track, again.call
			case kind < 5 && len(sent) > 0: // a take is cancelled
				again := rapid.SampledFrom(sent).Draw(rt, "cancelled")
				if again.call.op != "take" {
					continue
				}
				track, c = again.track, again.call
				c.op, c.args = "cancel", []any{c.args[0], "PUBLISH", "c"}
			default:
				numbers++
				c = call{number: numbers}
				n := rapid.IntRange(0, 5).Draw(rt, "n")
				c.op = rapid.SampledFrom([]string{"take", "take", "take", "give", "begin", "drain", "delete"}).Draw(rt, "op")
				switch c.op {
				case "take":
					c.args = []any{n + 1}
				case "give":
					c.args = []any{n - 2, "PUBLISH", "c", rapid.IntRange(0, 1).Draw(rt, "changes")}
				case "begin":
					c.args = []any{n, "PUBLISH", "c"}
				case "delete":
					m.send(0, c)
					rdb.Del(t.Context(), "s")
					continue
				}
				sent = append(sent, struct {
					track int
					call  call
				}{track, c})
			}
			want := m.send(track, c)
			got := a.ask(sources[c.op], keysOf(c.op), append([]any{track, c.number, tenMinutes}, c.args...)...)
			if c.op == "take" && strings.HasPrefix(got, "1 ") {
				got = "1" // the reply also tells since when the semaphore exists
			}
			if got != want {
				rt.Fatalf("%s %d on track %d %v: %q, want %q", c.op, c.number, track, c.args, got, want)
			}
			free, err := rdb.Get(t.Context(), "s").Int()
			if m.exists != (err == nil) || free != m.free {
				rt.Fatalf("%s leaves %d permits (%v), want %d (%v)", c.op, free, err, m.free, m.exists)
			}
		}
	})
}

// leasing is a plain model of leased permits: how many there are, and which ids have one until
// when.
type leasing struct {
	all   int
	now   time.Time
	until map[string]time.Time
}

func (m *leasing) live(id string) bool { return m.until[id].After(m.now) }

func (m *leasing) taken() (n int) {
	for id := range m.until {
		if m.live(id) {
			n++
		}
	}
	return n
}

func TestLeasingModel(t *testing.T) {
	redistest.Sequences(t)
	mini := redistest.Mini(t)
	rdb := mini.Client()
	rapid.Check(t, func(rt *rapid.T) { leasingSequence(rt, t, mini, rdb) })
}

func leasingSequence(rt *rapid.T, t *testing.T, mini *redistest.MiniServer, rdb *redis.Client) {
	m := &leasing{now: time.UnixMilli(1_700_000_000_000), until: make(map[string]time.Time)}
	mini.SetTime(m.now)
	rdb.FlushAll(t.Context())
	a := asker{t, rdb}
	numbers := 0
	set := func(n int) string {
		numbers++
		m.all = n
		return a.ask(sources["set"], settled, 0, numbers, tenMinutes, n, 0, "PUBLISH", "c")
	}
	set(rapid.IntRange(0, 6).Draw(rt, "permits"))
	for range rapid.IntRange(1, 30).Draw(rt, "steps") {
		owner := rapid.IntRange(0, 3).Draw(rt, "owner")
		ids := make([]any, 1+owner%3)
		live, known := 0, 0
		for i := range ids {
			id := fmt.Sprintf("%d:%d", owner, i)
			ids[i] = id
			if m.live(id) {
				live++
			}
			if _, ok := m.until[id]; ok {
				known++
			}
		}
		length := rapid.IntRange(1, 50).Draw(rt, "ms")
		until := m.now.Add(time.Duration(length) * time.Millisecond)
		var op, got, want string
		switch op = rapid.SampledFrom([]string{"lease", "lease", "renew", "release", "tick", "set", "update"}).Draw(rt, "op"); op {
		case "lease":
			want = "1 " + strconv.Itoa(length)
			free := m.all - m.taken()
			switch {
			case live == len(ids): // the same request, sent again: it shortens nothing
				want = "1 " + strconv.FormatInt(m.prolong(ids, until).Milliseconds(), 10)
			case live > 0:
				continue // an owner never asks again for permits that it has in part
			case len(ids) > m.all:
				want = "NOPERMITS"
			case len(ids) > free:
				want = "0 " + strconv.FormatInt(m.nearest().Sub(m.now).Milliseconds(), 10)
			}
			got = a.ask(sources[op], leased, append([]any{length, "PUBLISH", "c"}, ids...)...)
			if want[0] == '1' && live == 0 {
				m.give(ids, until)
			}
		case "renew":
			got = a.ask(sources[op], keysOf(op), append([]any{length}, ids...)...)
			want = "0"
			if live == len(ids) {
				want = "1 " + strconv.FormatInt(m.prolong(ids, until).Milliseconds(), 10)
			}
		case "release":
			got = a.ask(sources[op], leased, append([]any{"PUBLISH", "c"}, ids...)...)
			want = "0"
			if live == len(ids) {
				want = "1"
			}
			for _, id := range ids {
				delete(m.until, id.(string))
			}
		case "update":
			got = a.ask(sources[op], keysOf(op), length, ids[0])
			want = "0"
			if m.live(ids[0].(string)) {
				m.until[ids[0].(string)] = until
				want = "1"
			}
		case "tick":
			m.now = until
			mini.SetTime(m.now)
		case "set":
			set(rapid.IntRange(0, 6).Draw(rt, "permits"))
		}
		if got != want {
			rt.Fatalf("%s %v for %d ms: %q, want %q (known %d, live %d, all %d)", op, ids, length, got, want, known, live, m.all)
		}
		if state, want := a.ask(sources["state"], leased), fmt.Sprintf("1 %d %d", m.all-m.taken(), m.taken()); state != want {
			rt.Fatalf("%s %v leaves %q, want %q", op, ids, state, want)
		}
		free, _ := rdb.Get(t.Context(), "s").Int()
		if sum := free + int(rdb.ZCard(t.Context(), "taken").Val()); sum != m.all {
			rt.Fatalf("%s leaves %d in all, want %d", op, sum, m.all)
		}
	}
}

func (m *leasing) give(ids []any, until time.Time) {
	for _, id := range ids {
		m.until[id.(string)] = until
	}
}

// prolong has the leases last until then at the least, and returns how long the shortest lasts.
func (m *leasing) prolong(ids []any, until time.Time) time.Duration {
	least := time.Duration(1 << 62)
	for _, id := range ids {
		if m.until[id.(string)].Before(until) {
			m.until[id.(string)] = until
		}
		least = min(least, m.until[id.(string)].Sub(m.now))
	}
	return least
}

// nearest returns when the next lease is over.
func (m *leasing) nearest() time.Time {
	var live []time.Time
	for _, id := range slices.Sorted(maps.Keys(m.until)) {
		if m.live(id) {
			live = append(live, m.until[id])
		}
	}
	return slices.MinFunc(live, time.Time.Compare)
}
