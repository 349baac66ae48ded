// The past: what has happened at each name while somebody looked, in a bounded memory.

package console

import (
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// remembered is how many things that have happened are kept, of all names together.
const remembered = 20_000

// taken is an end that this console has brought about by force.
const taken holdfast.Happening = "taken"

// What only the Observer of one name notes.
const (
	watched       holdfast.Happening = "watched"   // from here on, what happens is seen
	unwatched     holdfast.Happening = "unwatched" // and from here on it is not
	alreadyHeld   holdfast.Happening = "already"   // Holder held when watching began; since when is not known
	noLongerWaits holdfast.Happening = "gone"      // Waiter waits no longer, and does not hold
)

// entry is one thing that has happened.
type entry struct {
	number int64 // entries have rising numbers
	holdfast.Event
	begun time.Time // when the hold that has ended began, or the first of the holds that no look saw; zero if not known
	late  bool      // it happened while nobody looked, and was found later
}

// past remembers the last entries. Two Observers may see the same thing, each when it looks: one of the list,
// and one of the name. The past keeps what is new of it: an owner of Go holds a thing once, and a thread of Java holds it
// under the same owner again and again, each time later.
type past struct {
	mu     sync.Mutex
	room   int
	number int64
	of     map[string][]entry
	order  []string          // the names of all entries, the oldest first
	forgot time.Time         // when the latest of the forgotten entries was
	claims map[end]time.Time // ends that this console is about to bring about
	spans  []span            // when the list was watched
	focus  map[string]int    // names with an Observer of their own
}

// end is the end of one hold, or of one permit.
type end struct {
	name, permit string
	owner        holdfast.Owner
}

// span is a time in which the list was watched, on the server's clock.
type span struct{ From, To time.Time }

func newPast(room int) *past {
	return &past{room: room, of: make(map[string][]entry), claims: make(map[end]time.Time), focus: make(map[string]int)}
}

// endings are how a hold ends, as far as an Observer can tell.
var endings = []holdfast.Happening{holdfast.EventReleased, holdfast.EventPassed, holdfast.EventExpired}

// add remembers what an Observer has seen. If own, it is the Observer of the name itself, which sees more
// than the one of the list: while there is one, it alone counts. begun is when the hold of From began, if that is
// known. It is late if it happened while nobody looked.
func (p *past) add(e holdfast.Event, own bool, begun time.Time, late bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !own && p.focus[e.Name] > 0 {
		return
	}
	claimed := end{e.Name, e.From.Permit, e.From.Owner}
	if _, ours := p.claims[claimed]; ours && slices.Contains(endings, e.What) {
		delete(p.claims, claimed)
		if next := e; e.What == holdfast.EventPassed {
			next.What, next.From = holdfast.EventGranted, holdfast.Holder{}
			defer p.keepNew(entry{Event: next, late: late})
		}
		e.What, e.Holder = taken, holdfast.Holder{}
	}
	p.keepNew(entry{Event: e, begun: begun, late: late})
}

// keepNew keeps of an event what is not known yet.
func (p *past) keepNew(e entry) {
	var over, came, same bool
	for _, old := range p.of[e.Name] {
		before := old.At.Before(e.At)
		over = sameHolder(old.From, e.From) || over && !(before && sameHolder(old.Holder, e.From))
		came = sameHolder(old.Holder, e.Holder) || came && !(before && sameHolder(old.From, e.Holder))
		if old.What == e.What {
			same = old.What == holdfast.EventCounted && old.Value == e.Value && old.All == e.All ||
				old.What == holdfast.EventWaits && old.Waiter.Owner == e.Waiter.Owner && old.Waiter.Since.Equal(e.Waiter.Since)
		}
	}
	switch {
	case e.What == holdfast.EventPassed && over && came, same:
		return
	case e.What == holdfast.EventPassed && over:
		e.What, e.From = holdfast.EventGranted, holdfast.Holder{}
	case e.What == holdfast.EventPassed && came:
		e.What, e.Holder = holdfast.EventReleased, holdfast.Holder{}
	case (e.What == holdfast.EventGranted || e.What == alreadyHeld) && came, e.What != holdfast.EventPassed && over:
		return
	case e.What == holdfast.EventUnseen && p.together(e):
		return
	}
	p.keep(e)
}

// shortHolds is the time whose holds that no look saw are counted as one entry.
const shortHolds = 10 * time.Second

// together adds holds that no look saw to the entry of others of that time. It gets a new number, as the latest.
func (p *past) together(e entry) bool {
	all := p.of[e.Name]
	for n := len(all) - 1; n >= 0 && e.At.Sub(all[n].At) <= shortHolds; n-- {
		if all[n].What != holdfast.EventUnseen || e.At.Sub(all[n].begun) > shortHolds {
			continue
		}
		p.number++
		e.number, e.begun, e.Times = p.number, all[n].begun, e.Times+all[n].Times
		p.of[e.Name] = append(slices.Delete(all, n, n+1), e)
		return true
	}
	return false
}

// sameHolder reports whether two are one hold, or one permit.
func sameHolder(a, b holdfast.Holder) bool {
	return a.Owner == b.Owner && a.Permit == b.Permit && a.Write == b.Write && (!a.Owner.IsZero() || a.Permit != "")
}

// keep keeps an entry, and forgets the oldest one if there is no room.
func (p *past) keep(e entry) {
	if len(p.order) >= p.room {
		oldest := p.order[0]
		if at := p.of[oldest][0].At; at.After(p.forgot) {
			p.forgot = at
		}
		p.order = p.order[1:]
		if p.of[oldest] = p.of[oldest][1:]; len(p.of[oldest]) == 0 {
			delete(p.of, oldest)
		}
	}
	p.number++
	if e.number = p.number; e.What == holdfast.EventUnseen {
		e.begun = e.At
	}
	p.of[e.Name] = append(p.of[e.Name], e)
	p.order = append(p.order, e.Name)
}

// since returns what has happened at a name after the entry of that number.
func (p *past) since(name string, number int64) []entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.of[name]
	n, _ := slices.BinarySearchFunc(all, number+1, func(e entry, n int64) int { return int(e.number - n) })
	return slices.Clone(all[n:])
}

// watchOwn says that a name has an Observer of its own from now on, or no longer.
func (p *past) watchOwn(name string, begins bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if begins {
		p.focus[name]++
	} else if p.focus[name]--; p.focus[name] == 0 {
		delete(p.focus, name)
	}
}

// mark notes when watching a name of its own begins or ends.
func (p *past) mark(name string, what holdfast.Happening, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keep(entry{Event: holdfast.Event{Name: name, What: what, At: at}})
}

// keptSpans is how many times of watching are remembered.
const keptSpans = 100

// watchedTo notes that the list is watched: up to now, or beginning now.
func (p *past) watchedTo(at time.Time, begins bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if begins || len(p.spans) == 0 {
		p.spans = append(p.spans, span{at, at})
		p.spans = p.spans[max(0, len(p.spans)-keptSpans):]
	}
	p.spans[len(p.spans)-1].To = at
}

// watchedSpans returns when the list was watched.
func (p *past) watchedSpans() []span {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.spans)
}

// wholeSince returns since when nothing was forgotten; zero if nothing ever was.
func (p *past) wholeSince() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.forgot
}

// claim notes that this console is about to end what holders hold, so that their end shows as what it is.
// The function that it returns takes that back.
func (p *past) claim(name string, holders []holdfast.Holder) (back func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c, at := range p.claims {
		if time.Since(at) > time.Minute { // nobody looked
			delete(p.claims, c)
		}
	}
	var ours []end
	for _, h := range holders {
		c := end{name, h.Permit, h.Owner}
		p.claims[c] = time.Now()
		ours = append(ours, c)
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, c := range ours {
			delete(p.claims, c)
		}
	}
}
