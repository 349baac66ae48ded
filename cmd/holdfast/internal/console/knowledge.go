// Knowledge: whether what is shown is so now, was so once, or is not known. What is not known is not free.

package console

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/observe"
)

// knowledge is how far it is known what Redis has.
type knowledge string

const (
	unknown knowledge = "unknown" // no look has seen it
	old     knowledge = "old"     // a look has seen it, but not the last one
	partly  knowledge = "partly"  // the last look saw some names, and others it did not see
	known   knowledge = "known"   // the last look saw it
)

// moment is what a hub knows.
type moment struct {
	how    knowledge
	states []holdfast.Inspection // by name; shared: do not change them
	missed map[string]bool       // those of states that the last look did not see, if it saw others
	looked time.Time             // when the last look that saw anything was, on this process's clock; zero: none has
	ahead  time.Duration         // by how much the server's clock is ahead of this process's
	err    error                 // why the last look failed, wholly or for some names
	most   map[string]int64      // the greatest count seen of a latch
}

// clock returns the time on the server's clock.
func (m moment) clock() time.Time { return time.Now().Add(m.ahead) }

// seenAt returns when the last look that saw anything was, on the server's clock; zero if there was none.
func (m moment) seenAt() time.Time {
	if m.looked.IsZero() {
		return time.Time{}
	}
	return m.looked.Add(m.ahead)
}

// silent reports whether a look failed because Redis does not answer.
func silent(err error) bool { return errors.Is(err, holdfast.ErrUnavailable) }

// resumed returns what is known when the looks begin anew: what was seen before is old until the first of them ends.
func (m moment) resumed() moment {
	if m.err = nil; m.how != unknown {
		m.how = old
	}
	return m
}

// after returns what is known after a look. A look that saw nothing leaves what earlier ones saw.
func (m moment) after(c observe.Change) moment {
	missed := m.unseenBy(c)
	m.err = c.Err
	switch {
	case c.Err == nil:
		m.how, m.states, m.missed = known, c.States, nil
	case len(missed) < len(c.States):
		m.how, m.states, m.missed = partly, c.States, missed
	default:
		if m.how != unknown {
			m.how = old
		}
		return m
	}
	m.looked = time.Now()
	if len(c.States) > 0 { // the latest was found just now
		m.ahead = time.Until(slices.MaxFunc(c.States, func(a, b holdfast.Inspection) int { return a.At.Compare(b.At) }).At)
	}
	most := make(map[string]int64)
	for _, i := range c.States {
		if i.Kind == holdfast.KindLatch { // Redis does not know how many it began with
			most[i.Name] = max(i.Value, m.most[i.Name])
		}
	}
	m.most = most
	return m
}

// unseenBy returns the names that a failed look did not see: those whose state is still that of an earlier look.
func (m moment) unseenBy(c observe.Change) map[string]bool {
	missed := make(map[string]bool)
	for _, i := range c.States {
		if before, found := m.find(i.Name); found && c.Err != nil && before.At.Equal(i.At) {
			missed[i.Name] = true
		}
	}
	return missed
}

// of returns the state of a name, and how far it is known.
func (m moment) of(name string) (holdfast.Inspection, knowledge) {
	i, found := m.find(name)
	switch {
	case m.how != partly:
		return i, m.how
	case !found:
		return i, unknown // it is free, or is one of those that the last look did not see
	case m.missed[name]:
		return i, old
	}
	return i, known
}

// only returns what is known of one name, as old: another hub saw it. If nothing is, it returns false.
func (m moment) only(name string) (moment, bool) {
	i, found := m.find(name)
	if !found {
		return m, false
	}
	most := map[string]int64{name: m.most[name]}
	looked := i.At.Add(-m.ahead)
	return moment{how: old, states: []holdfast.Inspection{i}, looked: looked, ahead: m.ahead, most: most}, true
}

// find returns what is stored at a name.
func (m moment) find(name string) (holdfast.Inspection, bool) {
	n, found := slices.BinarySearchFunc(m.states, name, func(i holdfast.Inspection, name string) int {
		return cmp.Compare(i.Name, name)
	})
	if !found {
		return holdfast.Inspection{Name: name, Kind: holdfast.KindFree, At: m.clock(), Waiters: -1}, false
	}
	return m.states[n], true
}

// begun returns since when the one who has held a thing alone had held it; zero if that is not known.
func (m moment) begun(e holdfast.Event) time.Time {
	i, found := m.find(e.Name)
	if !found || !slices.ContainsFunc(i.Holders, func(h holdfast.Holder) bool { return sameHolder(h, e.From) }) {
		return time.Time{}
	}
	return i.HeldSince
}
