// One look: what stands there now, and what has happened since the last look.

package observe

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
)

// looker keeps what the last look found.
type looker struct {
	*Observer
	states map[string]holdfast.Inspection
	last   time.Time // when the last look was
	ear    *ear
	ledger ledger
}

// glance is what one look has found, before it is compared with the last one.
type glance struct {
	found  map[string]holdfast.Inspection
	failed map[string]bool // names of which nothing is known this time
	whole  bool            // a name that was not found and has not failed is gone
	err    error
}

// look looks once. The first look that finds anything out reports no events.
func (l *looker) look(ctx context.Context) ([]Event, error) {
	ctx, stop := WhileAnswering(ctx, l.rdb, l.options.Patience)
	defer stop()
	for f, n := range l.ear.take() { // before it looks: what these announce, it finds
		l.ledger.heard[f] += n
	}
	g := glance{found: make(map[string]holdfast.Inspection), failed: make(map[string]bool)}
	if name, single := Single(l.options.Pattern); single {
		l.one(ctx, name, &g)
	} else {
		l.all(ctx, &g)
		l.vanished(ctx, &g)
	}
	if !g.whole && len(g.found) == 0 {
		return nil, g.err
	}
	first := l.last.IsZero()
	_, single := Single(l.options.Pattern)
	var events []Event
	for name, after := range g.found {
		before, known := l.states[name]
		if !known {
			before = holdfast.Inspection{Name: name, Kind: holdfast.KindFree}
		}
		here := Compare(before, after)
		if single {
			here = between(here, l.ledger.unseen(before, after, here))
		}
		if !first {
			events = append(events, here...)
		}
		l.keep(after)
	}
	if g.whole {
		l.last = time.Now()
	}
	return inOrder(events), g.err
}

// keep keeps what was found for the next look. Of a pattern, names at which nothing goes on are left out, as
// InspectAll does.
func (l *looker) keep(i holdfast.Inspection) {
	_, single := Single(l.options.Pattern)
	switch over := i.State != "" && i.State != "working" && i.State != "open"; {
	case !single && (over || i.Kind == holdfast.KindFree || i.Kind == holdfast.KindUnknown):
		delete(l.states, i.Name)
	default:
		l.states[i.Name] = i
	}
}

func (l *looker) one(ctx context.Context, name string, g *glance) {
	i, err := l.client.Inspect(ctx, name)
	if err != nil {
		g.err = because(ctx, err)
		return
	}
	g.found[name], g.whole = i, true
}

func (l *looker) all(ctx context.Context, g *glance) {
	g.whole = true
	for i, err := range l.client.InspectAll(ctx, l.options.Pattern) {
		switch {
		case err == nil:
			g.found[i.Name] = i
			continue
		case i.Name == "":
			g.whole = false
		default:
			g.failed[i.Name] = true
		}
		g.err = because(ctx, err)
	}
}

// because returns why an inspection failed: that ctx ended says less than why.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// again is how many names that are gone are inspected once more, each look: the work of a Once may be done, a
// barrier may have tripped, and a lock may have come back.
const again = 100

// vanished finds out what has become of names that stood there at the last look.
func (l *looker) vanished(ctx context.Context, g *glance) {
	if !g.whole {
		return
	}
	asked := 0
	for name, before := range l.states {
		if _, found := g.found[name]; found || g.failed[name] {
			continue
		}
		after := holdfast.Inspection{Name: name, Kind: holdfast.KindFree, At: before.At.Add(time.Since(l.last)), Waiters: -1}
		if asked < again {
			asked++
			i, err := l.client.Inspect(ctx, name)
			if err != nil {
				g.err = because(ctx, err)
				continue
			}
			after = i
		}
		g.found[name] = after
	}
}

// pause returns how long to rest after a look that took that long.
func (l *looker) pause(took time.Duration) time.Duration {
	if _, single := Single(l.options.Pattern); single {
		return max(shortest, l.options.Every-took)
	}
	return max(shortest, l.options.Every-took, 4*took, time.Duration(len(l.states))*time.Second/perSecond-took)
}

// inOrder puts events in the order of their names; those of one name stay in theirs.
func inOrder(events []Event) []Event {
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.Name, b.Name) })
	return events
}
