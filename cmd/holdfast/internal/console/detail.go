// The detail: one name with all its holders, its waiters, and its recent past.

package console

import (
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

// shownOfOne is how many holders, and how many waiters, the page of one name shows.
const shownOfOne = 100

// detail is what a viewer of one name gets: all of it at first, then what has changed.
type detail struct {
	heartbeat
	Name   string     `json:"name,omitempty"` // as people read it
	Row    *row       `json:"row,omitempty"`
	Past   []happened `json:"past,omitempty"`  // what the viewer does not have yet
	Spans  [][2]int64 `json:"spans,omitempty"` // when the list was watched
	Since  int64      `json:"since,omitempty"` // of what was before, some is forgotten
	Whole  bool       `json:"whole,omitempty"` // forget what was sent before
	Remote bool       `json:"remote,omitempty"`
}

// happened is an entry of the past without secrets.
type happened struct {
	Number int64   `json:"n"`
	At     int64   `json:"at"`
	What   string  `json:"what"`
	Holder *holder `json:"holder,omitempty"` // who holds now
	From   *holder `json:"from,omitempty"`   // who held
	Begun  int64   `json:"begun,omitempty"`  // since when From had held
	Late   bool    `json:"late,omitempty"`   // it happened while nobody looked, some time before At
	Times  int     `json:"times,omitempty"`  // how many holds, from Begun to At, no look saw
	Waiter *waiter `json:"waiter,omitempty"`
	Value  int64   `json:"value,omitempty"`
	Was    int64   `json:"was,omitempty"`
	All    int64   `json:"all,omitempty"`
}

// closeUp is one viewer of a name: it knows what the viewer has got.
type closeUp struct {
	name   string
	past   *past
	pager  pager // for its one row
	number int64 // of the last entry of the past that was sent
	remote bool  // the name has no Observer of its own: the one of the list looks at it
}

// next returns what the viewer is to get now.
func (c *closeUp) next(m moment) any {
	out := detail{heartbeat: heartbeatOf(m), Since: ms(c.past.wholeSince()), Whole: !c.pager.begun, Remote: c.remote}
	if out.Whole {
		out.Name = view.Name(c.name)
	}
	i, how := m.of(c.name)
	if out.How = how; how == old {
		out.Looked = ms(i.At)
	}
	if how != unknown {
		r := rowOf(i, m.most[c.name], shownOfOne, shownOfOne)
		t, changed := c.pager.tell(r)
		if changed {
			out.Row = &t.row
		}
		c.pager.rows = map[string]told{r.ID: t}
	}
	for _, e := range c.past.since(c.name, c.number) {
		out.Past = append(out.Past, happenedOf(e))
		c.number = e.number
	}
	if !c.pager.begun || c.remote {
		for _, s := range c.past.watchedSpans() {
			out.Spans = append(out.Spans, [2]int64{ms(s.From), ms(s.To)})
		}
	}
	c.pager.begun = true
	return out
}

func happenedOf(e entry) happened {
	out := happened{
		Number: e.number, At: ms(e.At), What: string(e.What), Begun: ms(e.begun), Late: e.late, Times: e.Times,
		Value: e.Value, Was: e.Was, All: e.All,
	}
	if e.Holder != (holdfast.Holder{}) {
		h := holderOf(view.HolderOf(e.Kind, e.Holder, false), 0)
		out.Holder = &h
	}
	if e.From != (holdfast.Holder{}) {
		h := holderOf(view.HolderOf(e.Kind, e.From, false), 0)
		out.From = &h
	}
	if e.Waiter != (holdfast.Waiter{}) {
		w := waiterOf(view.WaiterOf(e.Waiter, e.At, false))
		out.Waiter = &w
	}
	return out
}
