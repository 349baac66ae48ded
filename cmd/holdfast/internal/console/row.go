// A row: what is at one name, as the page gets it.

package console

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

// row is an Inspection without secrets, with instants in place of ages, so that it stays the same while
// nothing happens.
type row struct {
	ID      string   `json:"id"`   // the name, escaped for a URL
	Name    string   `json:"name"` // the name, as people read it
	Kind    string   `json:"kind"`
	State   string   `json:"state,omitempty"`
	Paused  string   `json:"paused,omitempty"` // by whom, until when and why, as people read it
	Holders []holder `json:"holders,omitempty"`
	Held    int      `json:"held,omitempty"`  // how many holders there are, of which Holders may have some
	Since   int64    `json:"since,omitempty"` // since when it is held, in ms of the server's clock
	Until   int64    `json:"until,omitempty"` // until when this lasts; Forever, or 0 if nothing ends
	Queue   []waiter `json:"queue,omitempty"`
	Waiters int      `json:"waiters"` // -1: not known
	Value   int64    `json:"value,omitempty"`
	All     int64    `json:"all,omitempty"`
	Most    int64    `json:"most,omitempty"` // the greatest count seen of a latch
	Seen    int64    `json:"seen,omitempty"` // when it was seen, if the last look did not see it
}

// holder is one that holds, or a permit that is taken.
type holder struct {
	Who    string `json:"who,omitempty"`
	Owner  string `json:"owner,omitempty"` // shortened
	Permit string `json:"permit,omitempty"`
	Note   string `json:"note,omitempty"`
	Count  int    `json:"count,omitempty"` // leases on the hold, if there are several
	Write  bool   `json:"write,omitempty"`
	Number *int   `json:"number,omitempty"` // of a slot
	Over   bool   `json:"over,omitempty"`   // of a slot: it is in quarantine
	Shards string `json:"shards,omitempty"` // of a member of shards: which it has
	Until  int64  `json:"until,omitempty"`
}

// waiter is one that waits.
type waiter struct {
	Who   string `json:"who,omitempty"`
	Owner string `json:"owner,omitempty"`
	Since int64  `json:"since,omitempty"`
	Write bool   `json:"write,omitempty"`
}

// forever is an instant that does not come.
const forever = -1

// rowOf returns the row of an Inspection with at most that many holders and waiters.
func rowOf(i holdfast.Inspection, most int64, holders, waiters int) row {
	shown := i
	shown.Holders = writersFirst(i.Holders, holders)
	shown.Queue = i.Queue[:min(waiters, len(i.Queue))]
	safe := view.JSON(shown, false)
	r := row{
		ID: escaped(i.Name), Name: view.Name(i.Name), Kind: safe.Kind, State: safe.State, Paused: view.Paused(i), Held: len(i.Holders),
		Since: ms(i.HeldSince), Until: until(i.At, i.Remaining), Waiters: i.Waiters,
		Value: safe.Value, All: safe.All, Most: most,
	}
	if len(i.Holders) == 0 && i.Remaining == holdfast.NoExpiry {
		r.Until = 0
	}
	for n, h := range safe.Holders {
		r.Holders = append(r.Holders, holderOf(h, until(i.At, shown.Holders[n].Remaining)))
	}
	for _, w := range safe.Queue {
		r.Queue = append(r.Queue, waiterOf(w))
	}
	return r
}

func holderOf(h view.HolderJSON, until int64) holder {
	out := holder{
		Who: plain(h.Who), Owner: h.Owner, Permit: plain(h.Permit), Note: plain(h.Note), Write: h.Write, Until: until,
		Number: h.Number, Over: h.Over, Shards: h.Shards,
	}
	if h.Count > 1 {
		out.Count = h.Count
	}
	return out
}

func waiterOf(w view.WaiterJSON) waiter {
	out := waiter{Who: plain(w.Who), Owner: w.Owner, Write: w.Write}
	if w.Since != nil {
		out.Since = ms(*w.Since)
	}
	return out
}

// plain returns a text as people can read it, or "".
func plain(text string) string {
	if text == "" {
		return ""
	}
	return view.Text(text)
}

// writersFirst returns some of the holders, and the writer among them.
func writersFirst(holders []holdfast.Holder, some int) []holdfast.Holder {
	if n := slices.IndexFunc(holders, func(h holdfast.Holder) bool { return h.Write }); n > 0 {
		holders = slices.Concat(holders[n:n+1], holders[:n], holders[n+1:])
	}
	return holders[:min(some, len(holders))]
}

// escaped returns a name as it stands in a URL's path or query, whatever bytes it has.
func escaped(name string) string { return strings.ReplaceAll(url.QueryEscape(name), "+", "%20") }

// ms returns an instant in milliseconds; 0 if it is not known.
func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func until(at time.Time, left time.Duration) int64 {
	switch {
	case left == holdfast.NoExpiry:
		return forever
	case left == 0:
		return 0
	}
	return ms(at.Add(left))
}

// steady takes those instants of an earlier row that differ only by the rounding of Redis, which returns what is left
// in whole milliseconds.
func (r *row) steady(before row) {
	r.Until = same(before.Until, r.Until)
	for n := range r.Holders {
		for _, old := range before.Holders {
			if h := &r.Holders[n]; h.Owner == old.Owner && h.Permit == old.Permit && h.Write == old.Write {
				h.Until = same(old.Until, h.Until)
			}
		}
	}
}

func same(before, now int64) int64 {
	if before > 0 && now > 0 && max(before-now, now-before) < 50 {
		return before
	}
	return now
}
