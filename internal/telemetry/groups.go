// The groups of names, by which a user may tell metrics apart.

package telemetry

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

const (
	// MaxGroups is how many groups a Client tells apart. A metric has a series for each, so there must
	// be few. Names of further groups count as OtherGroup.
	MaxGroups = 20

	// OtherGroup is the group of a name whose own group is one too many, or cannot be a value of a metric.
	OtherGroup = "other"

	// longestGroup is the length in bytes of the longest group.
	longestGroup = 64
)

// Kind is what a measurement is of: the kind of synchronizer, and the group that its name belongs to.
type Kind struct {
	Name  string // from a short list that the caller knows ("mutex", "rwlock.read")
	Group Group
}

// Group is the number of a group, for one Telemetry. The zero Group is none: without a function of the
// user's no name has another one. It is a byte because every hold has one.
type Group uint8

// other is the Group of OtherGroup.
const other Group = 1

// groups are the groups that a user's function puts names into. Its readers take no lock: what they read
// is replaced, never written. A nil *groups has no function.
type groups struct {
	of    func(name string) string
	known atomic.Pointer[knownGroups]
	mu    sync.Mutex // held while known is replaced; never while of is called
}

// knownGroups are the groups that have occurred.
type knownGroups struct {
	numbers map[string]Group
	values  []string // by number
}

func newGroups(of func(name string) string) *groups {
	if of == nil {
		return nil
	}
	g := &groups{of: of}
	g.known.Store(&knownGroups{
		numbers: map[string]Group{"": 0, OtherGroup: other},
		values:  []string{"", OtherGroup},
	})
	return g
}

// group asks the user's function for the group of a name. If that panics, the name is in OtherGroup.
func (g *groups) group(name string) (group Group) {
	if g == nil {
		return 0
	}
	group = other
	defer survive()
	value := g.of(name)
	if len(value) > longestGroup || !utf8.ValidString(value) {
		return other
	}
	if number, there := g.known.Load().numbers[value]; there {
		return number
	}
	return g.add(value)
}

// add gives the group a number, if there is one left.
func (g *groups) add(value string) Group {
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.known.Load()
	if number, there := known.numbers[value]; there { // another caller has added it
		return number
	}
	number := Group(len(known.values))
	if number > other+MaxGroups {
		return other
	}
	next := &knownGroups{numbers: maps.Clone(known.numbers), values: append(slices.Clone(known.values), value)}
	next.numbers[value] = number
	g.known.Store(next)
	return number
}

// value returns the group with that number, "" for none.
func (g *groups) value(number Group) string {
	if g == nil {
		return ""
	}
	return g.known.Load().values[number]
}

// Kind returns what a measurement of that name is of. It calls the user's function, which may block.
func (t *Telemetry) Kind(kind, name string) Kind {
	if t == nil || t.metrics == nil {
		return Kind{Name: kind}
	}
	return Kind{Name: kind, Group: t.metrics.groups.group(name)}
}
