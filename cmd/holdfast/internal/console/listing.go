// The listing: one page of all that stands in Redis, and what has changed on it.

package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

// perPage is how many rows a viewer sees at a time.
const perPage = 50

// asked is what a viewer wants to see of the list.
type asked struct {
	counts bool   // semaphores, latches and the like, in place of locks
	search string // what a name, a holder, a note or a waiter has, in whatever case
	kind   string
	sort   string // name, age, left or waiters
	down   bool
	page   int // the first is 1
}

// askedFor reads what a viewer wants from a query.
func askedFor(q url.Values) asked {
	page, _ := strconv.Atoi(q.Get("page"))
	return asked{
		counts: q.Get("show") == "counts", search: strings.ToLower(q.Get("q")), kind: q.Get("kind"),
		sort: q.Get("sort"), down: q.Get("order") == "down", page: max(1, page),
	}
}

// totals say how it stands with all names, whatever is searched for.
type totals struct {
	Locks   int   `json:"locks"`
	Counts  int   `json:"counts"`
	Held    int   `json:"held"`
	Waited  int   `json:"waited"`  // for how many locks somebody waits
	Waiters int   `json:"waiters"` // how many wait
	Longest int64 `json:"longest"` // since when the lock is held that is held for longest; 0 if none
}

// listing is what a viewer of the list is told: all of it at first, then what has changed.
type listing struct {
	heartbeat
	Totals  *totals           `json:"totals,omitempty"`
	Matched *int              `json:"matched,omitempty"`
	Page    int               `json:"page,omitempty"`
	Pages   int               `json:"pages,omitempty"`
	Order   *[]string         `json:"order,omitempty"` // the ids of the rows
	Rows    []json.RawMessage `json:"rows,omitempty"`  // those that are new, or have changed
}

// heartbeat tells a viewer that the console lives, and what time it is for Redis.
type heartbeat struct {
	Now    int64  `json:"now"`    // ms of the server's clock
	Looked int64  `json:"looked"` // when the last look was; 0 if none has been
	Error  string `json:"error,omitempty"`
}

func heartbeatOf(m moment) heartbeat {
	b := heartbeat{Now: ms(m.clock())}
	if !m.looked.IsZero() {
		b.Looked = ms(m.looked.Add(m.ahead))
	}
	if m.err != nil {
		b.Error = m.err.Error()
	}
	return b
}

// pager is one viewer of the list: it knows what the viewer has been told.
type pager struct {
	asked
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

// next returns what the viewer is to be told now.
func (p *pager) next(m moment) any {
	found, sums := p.find(m)
	pages := max(1, (len(found)+perPage-1)/perPage)
	page := min(p.asked.page, pages)
	out := listing{heartbeat: heartbeatOf(m)}
	shown := found[min(len(found), (page-1)*perPage):min(len(found), page*perPage)]
	order, rows := make([]string, 0, len(shown)), make(map[string]told, len(shown))
	for _, i := range shown {
		r := rowOf(i, m.most[i.Name], 2, 3)
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

// find returns what the viewer has asked for, in its order, and the totals of all.
func (p *pager) find(m moment) (found []holdfast.Inspection, sums totals) {
	var longest time.Time
	for _, i := range m.states {
		if isLock(i) {
			sums.Locks++
			if len(i.Holders) > 0 {
				sums.Held++
			}
			if i.Waiters > 0 {
				sums.Waited++
				sums.Waiters += i.Waiters
			}
			if !i.HeldSince.IsZero() && (longest.IsZero() || i.HeldSince.Before(longest)) {
				longest = i.HeldSince
			}
		} else {
			sums.Counts++
		}
		if isLock(i) != p.counts && (p.kind == "" || p.kind == string(i.Kind)) && has(i, p.search) {
			found = append(found, i)
		}
	}
	sums.Longest = ms(longest)
	p.inOrder(found)
	return found, sums
}

// has reports whether a text is in a name, or in what is said of who holds it or waits for it.
func has(i holdfast.Inspection, text string) bool {
	if text == "" || contains(view.Name(i.Name), text) {
		return true
	}
	for _, h := range i.Holders {
		if contains(h.Who, text) || contains(h.Note, text) || contains(shortOf(h.Owner), text) {
			return true
		}
	}
	return slices.ContainsFunc(i.Queue, func(w holdfast.Waiter) bool {
		return contains(w.Who, text) || contains(shortOf(w.Owner), text)
	})
}

func contains(text, part string) bool { return strings.Contains(strings.ToLower(text), part) }

func shortOf(o holdfast.Owner) string {
	if o.IsZero() {
		return ""
	}
	return o.Short()
}

// inOrder sorts inspections as the viewer wants. What is not known comes last.
func (p *pager) inOrder(all []holdfast.Inspection) {
	number := map[string]func(holdfast.Inspection) (int64, bool){
		"age":     func(i holdfast.Inspection) (int64, bool) { return -ms(i.HeldSince), !i.HeldSince.IsZero() },
		"left":    func(i holdfast.Inspection) (int64, bool) { return int64(i.Remaining), len(i.Holders) > 0 },
		"waiters": func(i holdfast.Inspection) (int64, bool) { return int64(i.Waiters), i.Waiters > 0 },
	}[p.sort]
	if number == nil { // they are in the order of their names
		if p.down {
			slices.Reverse(all)
		}
		return
	}
	slices.SortStableFunc(all, func(a, b holdfast.Inspection) int {
		x, known := number(a)
		y, too := number(b)
		switch {
		case known != too && known:
			return -1
		case known != too:
			return 1
		case p.down:
			x, y = y, x
		}
		return cmp.Compare(x, y)
	})
}
