// The past keeps each thing once, and no more than it has room for. What a hub knows after each look: not known is not
// free, and old is not known.

package console

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/observe"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func holderNumber(t *testing.T, n int) holdfast.Holder {
	t.Helper()
	o, err := holdfast.ParseOwner(fmt.Sprintf("ac9cf787-0000-8000-8000-000000000000:%d", n))
	redistest.Must(t, err)
	return holdfast.Holder{Owner: o, Count: 1}
}

// shown returns what a past has of a name, in short.
func shown(p *past) string {
	var all []string
	for _, e := range p.since("a", 0) {
		text := string(e.What)
		for _, h := range []holdfast.Holder{e.From, e.Holder} {
			if !h.Owner.IsZero() {
				text += " " + h.Owner.Short()[len("ac9cf787…:"):]
			}
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func TestTwoObserversSeeTheSameOnce(t *testing.T) {
	one, two, three := holderNumber(t, 1), holderNumber(t, 2), holderNumber(t, 3)
	granted := func(h holdfast.Holder) holdfast.Event {
		return holdfast.Event{What: holdfast.EventGranted, Name: "a", Holder: h}
	}
	released := func(h holdfast.Holder) holdfast.Event {
		return holdfast.Event{What: holdfast.EventReleased, Name: "a", From: h}
	}
	passed := func(x, y holdfast.Holder) holdfast.Event {
		return holdfast.Event{What: holdfast.EventPassed, Name: "a", From: x, Holder: y}
	}
	counted := func(n int64) holdfast.Event { return holdfast.Event{What: holdfast.EventCounted, Name: "a", Value: n} }
	for _, c := range []struct {
		what   string
		events []holdfast.Event
		want   string
	}{
		{"each twice", []holdfast.Event{granted(one), granted(one), released(one), released(one)}, "granted 1, released 1"},
		{"in two, and in one", []holdfast.Event{released(one), granted(two), passed(one, two)}, "released 1, granted 2"},
		{"in one, and in two", []holdfast.Event{passed(one, two), released(one), granted(two)}, "passed 1 2"},
		{"one saw more", []holdfast.Event{passed(one, two), passed(two, three), passed(one, three)}, "passed 1 2, passed 2 3"},
		{"the other saw more", []holdfast.Event{released(one), passed(one, three)}, "released 1, granted 3"},
		{"another end", []holdfast.Event{granted(three), passed(two, three)}, "granted 3, released 2"},
		{"a count", []holdfast.Event{counted(1), counted(1), counted(2), counted(1)}, "counted, counted, counted"},
	} {
		p := newPast(100)
		for _, e := range c.events {
			p.add(e, true, time.Time{}, false)
		}
		redistest.Equal(t, shown(p), c.want, "%s, want %s (%s)", c.want, c.what)
	}
}

// A thread of Java is the same owner each time that it locks.
func TestAThreadOfJavaHoldsAgain(t *testing.T) {
	one, two := holderNumber(t, 1), holderNumber(t, 2)
	start := time.Now()
	p := newPast(100)
	for _, e := range []holdfast.Event{
		{What: holdfast.EventGranted, Holder: one, At: start.Add(1 * time.Second)},
		{What: holdfast.EventReleased, From: one, At: start.Add(3 * time.Second)},
		{What: holdfast.EventGranted, Holder: one, At: start.Add(2 * time.Second)}, // another Observer saw it, and tells late
		{What: holdfast.EventGranted, Holder: one, At: start.Add(5 * time.Second)},
		{What: holdfast.EventReleased, From: one, At: start.Add(4 * time.Second)}, // and this
		{What: holdfast.EventPassed, From: one, Holder: two, At: start.Add(7 * time.Second)},
		{What: holdfast.EventPassed, From: two, Holder: one, At: start.Add(9 * time.Second)},
		{What: holdfast.EventReleased, From: one, At: start.Add(11 * time.Second)},
	} {
		e.Name = "a"
		p.add(e, true, time.Time{}, false)
	}
	redistest.Equal(t, shown(p), "granted 1, released 1, granted 1, passed 1 2, passed 2 1, released 1", "it shows %s")
}

func TestWhatThisConsoleTakesShowsAsTaken(t *testing.T) {
	one, two := holderNumber(t, 1), holderNumber(t, 2)
	p := newPast(100)
	p.claim("a", []holdfast.Holder{one})
	p.add(holdfast.Event{What: holdfast.EventPassed, Name: "a", From: one, Holder: two}, true, time.Time{}, false)
	redistest.Equal(t, shown(p), "taken 1, granted 2", "it shows %s")
	back := p.claim("a", []holdfast.Holder{two})
	back() // it was not taken after all
	p.add(holdfast.Event{What: holdfast.EventReleased, Name: "a", From: two}, true, time.Time{}, false)
	redistest.Equal(t, shown(p), "taken 1, granted 2, released 2", "it shows %s")
}

func TestThePastIsBounded(t *testing.T) {
	p := newPast(10)
	for n := range 1000 {
		name := []string{"a", "b", "c"}[n%3]
		p.add(holdfast.Event{What: holdfast.EventGranted, Name: name, Holder: holderNumber(t, n)}, false, time.Time{}, false)
	}
	kept := 0
	for _, name := range []string{"a", "b", "c"} {
		kept += len(p.since(name, 0))
	}
	if kept != 10 || len(p.since("a", 0)) != 4 {
		t.Errorf("%d are kept", kept)
	}
	if last := p.since("a", 999); len(last) != 1 || last[0].number != 1000 {
		t.Errorf("the last is %v", last)
	}
	for n := range 1000 {
		p.add(holdfast.Event{What: holdfast.EventGranted, Name: fmt.Sprint(n), Holder: holderNumber(t, n)}, false, time.Time{}, false)
	}
	redistest.Equal(t, len(p.of), 10, "%d names are kept")
}

func TestWhereANameIsWatchedTheListDoesNotCount(t *testing.T) {
	p := newPast(10)
	e := holdfast.Event{What: holdfast.EventTripped, Name: "a"}
	p.watchOwn("a", true)
	p.add(e, false, time.Time{}, false)
	p.add(e, true, time.Time{}, false)
	p.watchOwn("a", false)
	p.add(holdfast.Event{What: holdfast.EventBroken, Name: "a"}, false, time.Time{}, false)
	redistest.Equal(t, shown(p), "tripped, broken", "it shows %s")
}

func TestShortHoldsAreCountedTogether(t *testing.T) {
	p := newPast(100)
	start := time.Now()
	unseen := func(after time.Duration, times int) {
		p.add(holdfast.Event{What: holdfast.EventUnseen, Name: "a", At: start.Add(after), Times: times}, true, time.Time{}, false)
	}
	unseen(0, 2)
	told := p.since("a", 0)
	unseen(4*time.Second, 3)
	unseen(9*time.Second, 4)
	if news := p.since("a", told[0].number); len(news) != 1 || news[0].Times != 9 || !news[0].begun.Equal(start) {
		t.Errorf("a viewer that was told of 2 hears %+v", news)
	}
	p.add(holdfast.Event{What: holdfast.EventGranted, Name: "a", At: start, Holder: holderNumber(t, 1)}, true, time.Time{}, false)
	unseen(10*time.Second, 1) // it belongs to the others, and is the latest now
	unseen(11*time.Second, 1)
	redistest.Equal(t, shown(p), "granted 1, unseen, unseen", "it shows %s")
	if all := p.since("a", 0); all[1].Times != 10 || all[2].Times != 1 {
		t.Errorf("it counts %d and %d", all[1].Times, all[2].Times)
	}
}

func TestWhatIsKnownAfterEachLook(t *testing.T) {
	begun := time.Now()
	sees := func(second int, names string) (states []holdfast.Inspection) {
		for _, name := range strings.Fields(names) {
			at := begun.Add(time.Duration(second) * time.Second)
			states = append(states, holdfast.Inspection{Name: name, Kind: holdfast.KindMutex, At: at})
		}
		return states
	}
	failed := errors.New("refused")
	for _, c := range []struct {
		what  string
		looks []observe.Change // those without anything begin the looks anew
		want  string           // how far all is known; then a and b: how far each is known, and what it is
	}{
		{"nobody has looked", nil, "unknown: a unknown, b unknown"},
		{"the first look fails", []observe.Change{{Err: failed}}, "unknown: a unknown, b unknown"},
		{"it sees one", []observe.Change{{States: sees(1, "a")}}, "known: a known mutex, b known free"},
		{"it sees none", []observe.Change{{States: sees(1, "")}}, "known: a known free, b known free"},
		{"the next one fails", []observe.Change{
			{States: sees(1, "a")}, {States: sees(1, "a"), Err: failed},
		}, "old: a old mutex, b old free"},
		{"the next one sees some", []observe.Change{
			{States: sees(1, "a c")}, {States: append(sees(1, "a"), sees(2, "c")...), Err: failed},
		}, "partly: a old mutex, b unknown"},
		{"the first one sees some", []observe.Change{{States: sees(1, "a"), Err: failed}}, "partly: a known mutex, b unknown"},
		{"looks begin anew", []observe.Change{{States: sees(1, "a")}, {}}, "old: a old mutex, b old free"},
		{"looks begin anew, and fail", []observe.Change{
			{States: sees(1, "a")}, {}, {Err: failed},
		}, "old: a old mutex, b old free"},
		{"looks begin anew before any has seen anything", []observe.Change{{Err: failed}, {}}, "unknown: a unknown, b unknown"},
		{"it is seen again", []observe.Change{
			{States: sees(1, "a")}, {States: sees(1, "a"), Err: failed}, {States: sees(2, "b")},
		}, "known: a known free, b known mutex"},
	} {
		m := moment{how: unknown}
		for _, look := range c.looks {
			if look.Err == nil && look.States == nil && look.Missed == 0 && len(c.looks) > 1 {
				m = m.resumed()
				continue
			}
			m = m.after(look)
		}
		got := string(m.how) + ":"
		for _, name := range []string{"a", "b"} {
			i, how := m.of(name)
			got += fmt.Sprintf(" %s %s", name, how)
			if how != unknown {
				got += " " + string(i.Kind)
			}
			got += ","
		}
		if got = strings.TrimSuffix(got, ","); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}
