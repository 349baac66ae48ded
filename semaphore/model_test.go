// This file checks random sequences of scripts against plain models. -rapid.checks=100000 runs more
// of them.

package semaphore

import (
	"fmt"
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
	track, number int
	op            string
	args          []any
	reply         string // "" until the call has taken effect
	from          int    // the number of the semaphore that it took from
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
func (m *counting) send(c call) string {
	last, ok := m.tracks[c.track]
	switch {
	case c.op == "delete":
		m.free, m.exists = 0, false
		return ""
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
		case changes && !m.given && (m.all == 0 || m.free-n > m.all): // all was not known
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
	case "drain":
		taken := max(m.free, 0)
		m.free -= taken
		c.reply = fmt.Sprintf("1 %d", taken)
	}
	m.tracks[c.track] = c
	return c.reply
}

// begin makes the semaphore anew.
func (m *counting) begin(all int) {
	m.all, m.exists, m.given = max(all, 0), true, false
	m.made++
}

// drawCall draws a new call, or one that was sent before: it is sent again, perhaps late, or is a take that is
// cancelled.
func drawCall(rt *rapid.T, sent []call) (c call, again bool) {
	kind := rapid.IntRange(0, 9).Draw(rt, "kind")
	if again = kind < 5 && len(sent) > 0; again {
		if c = rapid.SampledFrom(sent).Draw(rt, "again"); kind > 2 && c.op == "take" {
			c.op, c.args = "cancel", []any{c.args[0], "PUBLISH", "c"}
		}
		return c, again
	}
	n := rapid.IntRange(0, 5).Draw(rt, "n")
	c = call{track: rapid.IntRange(0, 2).Draw(rt, "track"), number: len(sent) + 1}
	c.op = rapid.SampledFrom([]string{"take", "take", "take", "give", "begin", "drain", "delete"}).Draw(rt, "op")
	c.args = map[string][]any{
		"take":  {n + 1},
		"give":  {n - 2, "PUBLISH", "c", rapid.IntRange(0, 1).Draw(rt, "changes")},
		"begin": {n, "PUBLISH", "c"},
	}[c.op]
	return c, again
}

func TestCountingModel(t *testing.T) {
	redistest.Sequences(t)
	rdb := redistest.Mini(t).Client()
	rapid.Check(t, func(rt *rapid.T) {
		rdb.FlushAll(t.Context())
		a := asker{t, rdb}
		m := &counting{tracks: make(map[int]call)}
		var sent []call
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			c, again := drawCall(rt, sent)
			want := m.send(c)
			if c.op == "delete" { // by a stranger
				rdb.Del(t.Context(), "s")
				continue
			}
			if !again {
				sent = append(sent, c)
			}
			got := a.ask(sources[c.op], keysOf(c.op), append([]any{c.track, c.number, tenMinutes}, c.args...)...)
			if c.op == "take" && strings.HasPrefix(got, "1 ") {
				got = "1" // the reply also tells since when the semaphore exists
			}
			free, err := rdb.Get(t.Context(), "s").Int()
			if got != want || m.exists != (err == nil) || free != m.free {
				rt.Fatalf("%+v: %q, want %q; leaves %d permits (%v), want %d (%v)", c, got, want, free, err, m.free, m.exists)
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
	for number := range rapid.IntRange(2, 31).Draw(rt, "steps") {
		op := rapid.SampledFrom([]string{"lease", "lease", "renew", "release", "tick", "set", "update"}).Draw(rt, "op")
		if number == 0 {
			op = "set"
		}
		owner := rapid.IntRange(0, 3).Draw(rt, "owner")
		ids := make([]any, 1+owner%3)
		live := 0
		for i := range ids {
			ids[i] = fmt.Sprintf("%d:%d", owner, i)
			if m.live(ids[i].(string)) {
				live++
			}
		}
		length := rapid.IntRange(1, 50).Draw(rt, "ms")
		until := m.now.Add(time.Duration(length) * time.Millisecond)
		got, want := "0", "0"
		switch op {
		case "lease":
			switch free := m.all - m.taken(); {
			case live == len(ids): // the same request, sent again: it shortens nothing
				want = m.prolong(ids, until)
			case live > 0:
				continue // an owner never asks again for permits that it has in part
			case len(ids) > m.all:
				want = "NOPERMITS"
			case len(ids) > free:
				want = "0 " + strconv.FormatInt(m.nearest().Sub(m.now).Milliseconds(), 10)
			default:
				want = m.prolong(ids, until)
			}
			got = a.ask(sources[op], leased, append([]any{length, "PUBLISH", "c"}, ids...)...)
		case "renew":
			if live == len(ids) {
				want = m.prolong(ids, until)
			}
			got = a.ask(sources[op], keysOf(op), append([]any{length}, ids...)...)
		case "release":
			if live == len(ids) {
				want = "1"
			}
			got = a.ask(sources[op], leased, append([]any{"PUBLISH", "c"}, ids...)...)
			for _, id := range ids {
				delete(m.until, id.(string))
			}
		case "update":
			if id := ids[0].(string); m.live(id) {
				m.until[id], want = until, "1"
			}
			got = a.ask(sources[op], keysOf(op), length, ids[0])
		case "tick":
			m.now = until
			mini.SetTime(m.now)
		case "set":
			m.all = rapid.IntRange(0, 6).Draw(rt, "permits")
			a.ask(sources["set"], settled, 0, number+1, tenMinutes, m.all, 0, "PUBLISH", "c")
		}
		free, _ := rdb.Get(t.Context(), "s").Int()
		state, left := a.ask(sources["state"], leased), fmt.Sprintf("1 %d %d", m.all-m.taken(), m.taken())
		if sum := free + int(rdb.ZCard(t.Context(), "taken").Val()); got != want || state != left || sum != m.all {
			rt.Fatalf("%s %v for %d ms: %q, want %q; leaves %q and %d in all, want %q and %d", op, ids, length, got, want, state, sum, left, m.all)
		}
	}
}

// prolong has the leases last until then at the least, and returns the reply, with how long the shortest lasts.
func (m *leasing) prolong(ids []any, until time.Time) string {
	least := time.Duration(1 << 62)
	for _, id := range ids {
		if m.until[id.(string)].Before(until) {
			m.until[id.(string)] = until
		}
		least = min(least, m.until[id.(string)].Sub(m.now))
	}
	return "1 " + strconv.FormatInt(least.Milliseconds(), 10)
}

// nearest returns when the next lease is over.
func (m *leasing) nearest() (next time.Time) {
	for id, until := range m.until {
		if m.live(id) && (next.IsZero() || until.Before(next)) {
			next = until
		}
	}
	return next
}
