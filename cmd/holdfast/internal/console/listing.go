// The listing: one page of all that stands in Redis, and what has changed on it.

package console

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/roster"
)

// perPage is how many rows a viewer sees at a time.
const perPage = 50

// askedFor reads what a viewer wants to see of the list from a query, and which page of it: the first is 1.
func askedFor(q url.Values) (roster.Query, int) {
	page, _ := strconv.Atoi(q.Get("page"))
	older, _ := time.ParseDuration(q.Get("older"))
	part := roster.Locks
	if q.Get("show") == "counts" {
		part = roster.Counts
	}
	return roster.Query{
		Part: part, Kind: holdfast.Kind(q.Get("kind")), Search: strings.ToLower(q.Get("q")),
		Sort: roster.Order(q.Get("sort")), Down: q.Get("order") == "down", Older: older,
	}, max(1, page)
}

// totals say how it stands with all names, whatever is searched for.
type totals struct {
	Locks   int   `json:"locks"`
	Counts  int   `json:"counts"`
	Held    int   `json:"held"`
	Waited  int   `json:"waited"`  // for how many locks somebody waits
	Waiters int   `json:"waiters"` // how many wait
	Longest int64 `json:"longest"` // since when the lock that is held for longest is held; 0 if none
}

func totalsOf(states []holdfast.Inspection) totals {
	t := roster.TotalsOf(states)
	return totals{t.Locks, t.Counts, t.Held, t.Waited, t.Waiters, ms(t.Longest)}
}

// listing is what a viewer of the list gets: all of it at first, then what has changed.
type listing struct {
	heartbeat
	Totals  *totals           `json:"totals,omitempty"`
	Matched *int              `json:"matched,omitempty"`
	Page    int               `json:"page,omitempty"`
	Pages   int               `json:"pages,omitempty"`
	Order   *[]string         `json:"order,omitempty"` // the ids of the rows
	Rows    []json.RawMessage `json:"rows,omitempty"`  // those that are new, or have changed
}

// heartbeat notifies a viewer that the console lives, what time it is for Redis, and how far what it shows is known.
type heartbeat struct {
	Now    int64     `json:"now"` // ms of the server's clock
	How    knowledge `json:"how"`
	Looked int64     `json:"looked"`           // when the last look that saw anything was; 0 if none did
	Error  string    `json:"error,omitempty"`  // why the last look failed, wholly or for some names
	Silent bool      `json:"silent,omitempty"` // it failed because Redis does not answer
}

func heartbeatOf(m moment) heartbeat {
	b := heartbeat{Now: ms(m.clock()), How: m.how, Looked: ms(m.seenAt()), Silent: silent(m.err)}
	if m.err != nil {
		b.Error = m.err.Error()
	}
	return b
}

// pager is one viewer of the list: it knows what the viewer has asked for, and what it has got.
type pager struct {
	asked   roster.Query
	at      int // the page that was asked for
	rows    map[string]told
	order   []string
	totals  totals
	matched int
	page    int
	pages   int
	begun   bool
}

// told is a row, and its text as it was sent.
type told struct {
	row
	text json.RawMessage
}

// next returns what the viewer is to get now.
func (p *pager) next(m moment) any {
	if m.how == unknown {
		return heartbeatOf(m) // no number, and no empty list
	}
	found, sums := p.asked.Of(m.states), totalsOf(m.states)
	pages := max(1, (len(found)+perPage-1)/perPage)
	page := min(p.at, pages)
	out := listing{heartbeat: heartbeatOf(m)}
	shown := found[min(len(found), (page-1)*perPage):min(len(found), page*perPage)]
	order, rows := make([]string, 0, len(shown)), make(map[string]told, len(shown))
	for _, i := range shown {
		r := rowOf(i, m.most[i.Name], 2, 3)
		if m.missed[i.Name] {
			r.Seen = ms(i.At)
		}
		t, changed := p.tell(r)
		if changed {
			out.Rows = append(out.Rows, t.text)
		}
		order, rows[r.ID] = append(order, r.ID), t
	}
	if !p.begun || !slices.Equal(order, p.order) {
		out.Order = &order
	}
	if !p.begun || sums != p.totals {
		out.Totals = &sums
	}
	if matched := len(found); !p.begun || matched != p.matched || page != p.page || pages != p.pages {
		out.Matched, out.Page, out.Pages = &matched, page, pages
	}
	p.rows, p.order, p.totals, p.matched, p.page, p.pages, p.begun = rows, order, sums, len(found), page, pages, true
	return out
}

// tell returns a row with its text, and whether the viewer does not have that text yet.
func (p *pager) tell(r row) (t told, changed bool) {
	before, known := p.rows[r.ID]
	if known {
		r.steady(before.row)
	}
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // a row has nothing that JSON lacks
	}
	return told{r, text}, !known || !bytes.Equal(text, before.text)
}
