// One look of a Watch: what is there now, and what has happened since the last look.

package holdfast

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/inspect"
)

// looker keeps what the last look found.
type looker struct {
	*Client
	pattern string
	single  bool
	name    string // if it looks at a single one
	every   time.Duration

	states map[string]Inspection
	last   time.Time // when the last look was

	ear    *inspect.Ear
	home   string // the server at which the ear hears; "": it is deaf
	ledger ledger

	servers inspect.Servers
	account inspect.Account // of before the last look
	asked   time.Time       // when the servers were asked for it
}

// glance is what one look has found, before it is compared with the last one.
type glance struct {
	found  map[string]Inspection
	failed map[string]bool // names of which nothing is known this time
	whole  bool            // a name that was not found and has not failed is gone
	err    error
}

// close ends what the looker has open.
func (l *looker) close() {
	l.ear.Stop()
	l.servers.Close()
}

// look looks once. The first look that finds anything out reports no events.
func (l *looker) look(ctx context.Context) ([]Event, error) {
	ctx, stop := inspect.WhileAnswering(ctx)
	defer stop()
	l.listen(ctx)
	for f, n := range l.ear.Take() { // before it looks: what these announce, it finds
		l.ledger.heard[f] += n
	}
	account, asked := l.account, l.asked
	if time.Since(asked) >= seldom {
		account, asked = l.ask(ctx), time.Now()
	}
	g := glance{found: make(map[string]Inspection), failed: make(map[string]bool)}
	if l.single {
		l.one(ctx, l.name, &g)
	} else {
		l.all(ctx, &g)
		l.vanished(ctx, &g)
	}
	if !g.whole && len(g.found) == 0 {
		return nil, g.err
	}
	events := l.compare(ctx, &g)
	if g.whole {
		l.last = time.Now()
	}
	if g.err == nil {
		l.account, l.asked = account, asked
	}
	return inOrder(events), g.err
}

// compare returns what has happened to the names that were found, and keeps them for the next look.
func (l *looker) compare(ctx context.Context, g *glance) (events []Event) {
	first, heard := l.last.IsZero(), l.ledger.heard
	for name, after := range g.found {
		before, known := l.states[name]
		if !known {
			before = Inspection{Name: name, Kind: KindFree}
		}
		here := Compare(before, after)
		if l.single {
			here = between(here, l.ledger.unseen(before, after, here))
		}
		if !first {
			events = append(events, here...)
		}
		l.keep(after)
	}
	unannounced := func(e Event) bool {
		f := familyOf(e.Kind)
		early := e.What == EventReleased || e.What == EventPassed
		return early && (f == inspect.Families || heard[f] == 0)
	}
	if slices.ContainsFunc(events, unannounced) && l.account.MayHaveDropped(l.ask(ctx)) {
		if l.ear.Wake != nil && engine.Sleep(ctx, shortest) == nil { // the announcement may be on its way
			for f, n := range l.ear.Take() {
				heard[f] += n
				l.ledger.heard[f] += n
			}
		}
		events = doubted(events, unannounced)
	}
	return events
}

// doubted returns events between which Redis has dropped keys of its own accord: holds whose release was not announced may
// have been among them.
func doubted(events []Event, unannounced func(Event) bool) (all []Event) {
	for _, e := range events {
		if !unannounced(e) {
			all = append(all, e)
			continue
		}
		lost, granted := e, e
		lost.What, lost.Holder = EventLost, Holder{}
		all = append(all, lost)
		if e.What == EventPassed {
			granted.What, granted.From = EventGranted, Holder{}
			all = append(all, granted)
		}
	}
	return all
}

// listen makes the ear hear at the server that has the name. It hears nothing of a pattern, for which a message would
// come at each release in Redis, and nothing where channels are sharded, to which PSUBSCRIBE does not subscribe.
func (l *looker) listen(ctx context.Context) {
	if !l.single {
		return
	}
	key := l.space.At(l.name)
	sharded, err := l.engine.Conn.Sharded(ctx)
	if sharded || err != nil {
		return
	}
	home, err := l.engine.Conn.Node(ctx, key)
	if err != nil || home == l.home {
		return
	}
	l.ear.Stop()
	l.ear, l.home = inspect.Listen(ctx, l.engine.Conn, l.space, home, key), home
}

// seldom is how often the servers are asked what they have dropped, if nothing gives reason to ask.
const seldom = time.Second

// ask asks the servers that have the names what they have dropped.
func (l *looker) ask(ctx context.Context) inspect.Account {
	var servers []string
	var err error
	if l.single {
		servers = make([]string, 1)
		servers[0], err = l.engine.Conn.Node(ctx, l.space.At(l.name))
	} else {
		servers, err = l.engine.Conn.Masters(ctx)
	}
	if err != nil {
		return nil
	}
	return l.servers.Ask(ctx, l.engine.Conn, servers)
}

// keep keeps what was found for the next look. Of a pattern, names at which nothing goes on are left out, as
// InspectAll does.
func (l *looker) keep(i Inspection) {
	if f := (found{Inspection: i}); !l.single && !f.stands() {
		delete(l.states, i.Name)
		return
	}
	l.states[i.Name] = i
}

func (l *looker) one(ctx context.Context, name string, g *glance) {
	all := l.inspectEach(ctx, []string{name})
	if err := all[0].err; err != nil {
		g.err = because(ctx, err)
		return
	}
	g.found[name], g.whole = all[0].Inspection, true
}

func (l *looker) all(ctx context.Context, g *glance) {
	g.whole = true
	for i, err := range l.InspectAll(ctx, l.pattern) {
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

// because returns why an inspection failed: why ctx ended, rather than that it did.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errs.Wrap("watch", context.Cause(ctx))
	}
	return err
}

// again is how many names that are gone are inspected once more, each look: the work of a Once may be done, a
// barrier may have tripped, and a lock may have come back.
const again = 100

// vanished finds out what has become of names that were there at the last look.
func (l *looker) vanished(ctx context.Context, g *glance) {
	if !g.whole {
		return
	}
	asked := 0
	for name, before := range l.states {
		if _, found := g.found[name]; found || g.failed[name] {
			continue
		}
		if asked < again {
			asked++
			l.one(ctx, name, g)
			g.whole = true
			continue
		}
		g.found[name] = Inspection{Name: name, Kind: KindFree, At: before.At.Add(time.Since(l.last)), Waiters: -1}
	}
}

// pause returns how long to rest after a regular look that took that long.
func (l *looker) pause(took time.Duration) time.Duration {
	if l.single {
		return max(shortest, l.every-took)
	}
	return max(shortest, l.every-took, 4*took, time.Duration(len(l.states))*time.Second/perSecond-took)
}

// sorted returns the states by name.
func (l *looker) sorted() []Inspection {
	return slices.SortedFunc(maps.Values(l.states), func(a, b Inspection) int {
		return cmp.Compare(a.Name, b.Name)
	})
}

// inOrder puts events in the order of their names; those of one name stay in theirs.
func inOrder(events []Event) []Event {
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.Name, b.Name) })
	return events
}
