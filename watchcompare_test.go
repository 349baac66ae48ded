// Two inspections of one name tell what has happened in between, and a release that was announced is set against the one
// that a look has found.

package holdfast

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/inspect"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// owner returns the owner of a letter.
func owner(t *testing.T, letter byte) Owner {
	t.Helper()
	o, err := ParseOwner(fmt.Sprintf("%c%c%c%c%c%c%c%c-1111-8111-8111-111111111111:1",
		letter, letter, letter, letter, letter, letter, letter, letter))
	redistest.Must(t, err)
	return o
}

// state describes an inspection at a second after noon.
type state struct {
	kind    Kind
	second  int
	holds   string // a letter for each holder; a writer's is followed by !
	left    time.Duration
	permits []string
	waits   string // a letter for each waiter
	value   int64
	all     int64
	taken   int
	state   string
}

func (s state) inspection(t *testing.T) Inspection {
	t.Helper()
	i := Inspection{
		Name: "x", Kind: s.kind, At: noon.Add(time.Duration(s.second) * time.Second),
		Value: s.value, All: s.all, Taken: s.taken, State: s.state, Remaining: s.left,
	}
	for n := range len(s.holds) {
		if s.holds[n] == '!' {
			i.Holders[len(i.Holders)-1].Write = true
			continue
		}
		h := Holder{Owner: owner(t, s.holds[n]), Who: s.holds[n : n+1], Count: 1, Remaining: s.left}
		i.Holders = append(i.Holders, h)
	}
	for _, p := range s.permits {
		i.Holders = append(i.Holders, Holder{Permit: p, Who: p, Count: 1, Remaining: s.left})
	}
	for n := range len(s.waits) {
		i.Queue = append(i.Queue, Waiter{Owner: owner(t, s.waits[n]), Who: s.waits[n : n+1]})
	}
	return i
}

// told returns events as words.
func told(events []Event) (words []string) {
	for _, e := range events {
		text := string(e.What)
		switch e.What {
		case EventGranted:
			text += " " + e.Holder.Who
		case EventPassed:
			text += " " + e.From.Who + e.Holder.Who
		case EventWaits:
			text += " " + e.Waiter.Who
		case EventUnseen:
			text += fmt.Sprintf(" %d", e.Times)
		case EventCounted:
			text += fmt.Sprintf(" %d/%d was %d", e.Value, e.All, e.Was)
		default:
			text += " " + e.From.Who
		}
		words = append(words, text)
	}
	return words
}

func TestCompare(t *testing.T) {
	const (
		mutex, rw, lead, once = KindMutex, KindRWLock, KindLeader, KindOnce
		free, latch, count    = KindFree, KindLatch, KindCount
		sem, permits, barrier = KindSemaphore, KindPermits, KindBarrier
	)
	long := 30 * time.Second
	for what, tc := range map[string]struct {
		before, after state
		want          string
	}{
		"nothing":                     {state{kind: free}, state{kind: free, second: 1}, ""},
		"held on":                     {state{kind: mutex, holds: "a", left: long}, state{kind: mutex, second: 9, holds: "a", left: long}, ""},
		"a grant":                     {state{kind: free}, state{kind: mutex, holds: "a", left: long}, "granted a"},
		"a release":                   {state{kind: mutex, holds: "a", left: long}, state{kind: free, second: 1}, "released a"},
		"a hold without end":          {state{kind: mutex, holds: "a", left: NoExpiry}, state{kind: free, second: 99}, "released a"},
		"its time was over":           {state{kind: mutex, holds: "a", left: time.Second}, state{kind: free, second: 1}, "expired a"},
		"over, to within a ms":        {state{kind: mutex, holds: "a", left: time.Second + time.Millisecond}, state{kind: free, second: 1}, "expired a"},
		"a hand-over":                 {state{kind: mutex, holds: "a", left: long, waits: "b"}, state{kind: mutex, holds: "b", second: 1, left: long}, "passed ab"},
		"over, and the next":          {state{kind: mutex, holds: "a", left: time.Second}, state{kind: mutex, holds: "b", second: 2, left: long}, "expired a, granted b"},
		"another leads":               {state{kind: lead, holds: "a", left: long}, state{kind: mutex, holds: "b", second: 1, left: long}, "passed ab"},
		"two come to wait":            {state{kind: mutex, holds: "a", left: long}, state{kind: mutex, holds: "a", left: long, waits: "bc"}, "waits b, waits c"},
		"one waits on":                {state{kind: mutex, holds: "a", left: long, waits: "b"}, state{kind: mutex, holds: "a", left: long, waits: "cb"}, "waits c"},
		"readers come and go":         {state{kind: rw, holds: "ab", left: long}, state{kind: rw, holds: "bc", second: 1, left: long}, "released a, granted c"},
		"a writer follows readers":    {state{kind: rw, holds: "ab", left: long}, state{kind: rw, holds: "c!", second: 1, left: long}, "released a, released b, granted c"},
		"a writer follows a writer":   {state{kind: rw, holds: "a!", left: long}, state{kind: rw, holds: "b!", second: 1, left: long}, "passed ab"},
		"a writer becomes a reader":   {state{kind: rw, holds: "a!a", left: long}, state{kind: rw, holds: "a", second: 1, left: long}, "released a"},
		"permits":                     {state{kind: permits, permits: []string{"1", "2"}, left: long, value: 1, taken: 2}, state{kind: permits, permits: []string{"2", "3"}, left: long, value: 1, taken: 2}, "released 1, granted 3"},
		"the last permit":             {state{kind: permits, permits: []string{"1"}, left: long, value: 2, taken: 1}, state{kind: count, value: 3}, "released 1"},
		"more permits":                {state{kind: permits, permits: []string{"1"}, left: long, value: 2, taken: 1}, state{kind: permits, permits: []string{"1"}, left: long, value: 4, taken: 1}, "counted 5/0 was 3"},
		"a semaphore":                 {state{kind: sem, value: 3, all: 5}, state{kind: sem, value: 1, all: 5}, "counted 1/5 was 3"},
		"a semaphore, more in all":    {state{kind: sem, value: 3, all: 5}, state{kind: sem, value: 3, all: 6}, "counted 3/6 was 3"},
		"a semaphore that is known":   {state{kind: count, value: 3}, state{kind: sem, value: 3, all: 5}, ""},
		"a latch is set":              {state{kind: free}, state{kind: latch, value: 3}, "counted 3/0 was 0"},
		"a latch counts":              {state{kind: latch, value: 3}, state{kind: latch, value: 2}, "counted 2/0 was 3"},
		"a latch comes to zero":       {state{kind: latch, value: 1}, state{kind: free}, "counted 0/0 was 1"},
		"a party comes":               {state{kind: barrier, state: "open", value: 1, all: 3, waits: "a"}, state{kind: barrier, state: "open", value: 2, all: 3, waits: "ab"}, "counted 2/3 was 1, waits b"},
		"a barrier trips":             {state{kind: barrier, state: "open", value: 2, all: 3}, state{kind: barrier, state: "tripped"}, "tripped "},
		"a barrier breaks":            {state{kind: barrier, state: "open", value: 2, all: 3}, state{kind: barrier, state: "broken"}, "broken "},
		"the next generation":         {state{kind: barrier, state: "tripped"}, state{kind: barrier, state: "open", value: 1, all: 3}, "counted 1/3 was 0"},
		"work begins":                 {state{kind: free}, state{kind: once, state: "working", holds: "a", left: long}, "granted a"},
		"work is done":                {state{kind: once, state: "working", holds: "a", left: long}, state{kind: once, state: "done", second: 1}, "done a"},
		"work fails":                  {state{kind: once, state: "working", holds: "a", left: long}, state{kind: once, state: "failed", second: 1}, "failed a"},
		"work that was not seen":      {state{kind: free}, state{kind: once, state: "done"}, "done "},
		"work is given up":            {state{kind: once, state: "working", holds: "a", left: long}, state{kind: free, second: 1}, "released a"},
		"a worker dies, another does": {state{kind: once, state: "working", holds: "a", left: time.Second}, state{kind: once, state: "working", holds: "b", left: long, second: 1}, "expired a, granted b"},
	} {
		t.Run(what, func(t *testing.T) {
			events := Compare(tc.before.inspection(t), tc.after.inspection(t))
			redistest.Equal(t, strings.Join(told(events), ", "), tc.want, "%q, want %q", tc.want)
			for _, e := range events {
				if e.Name != "x" || e.Kind == free || e.At.IsZero() {
					t.Errorf("%+v", e)
				}
			}
		})
	}
}

// A message may come before or after the look that finds its release. This catches a release that is reported twice
// then, and one that is forgotten for good.
func TestAReleaseIsSetAgainstItsMessage(t *testing.T) {
	free := state{kind: KindFree}
	held := func(by string) state { return state{kind: KindMutex, holds: by, left: time.Minute} }
	type step struct {
		heard int
		to    state
		want  int // unseen
	}
	for what, tc := range map[string][]step{
		"in time":                 {{0, held("a"), 0}, {1, free, 0}},
		"late":                    {{0, held("a"), 0}, {0, free, 0}, {1, free, 0}},
		"late, and one more":      {{0, held("a"), 0}, {0, free, 0}, {2, free, 1}},
		"lost":                    {{0, held("a"), 0}, {0, free, 0}, {0, free, 0}, {1, free, 1}},
		"between free and free":   {{3, free, 3}},
		"before a grant":          {{2, held("a"), 2}, {1, held("b"), 0}, {2, held("c"), 1}},
		"held all the while":      {{0, held("a"), 0}, {1, held("a"), 0}},
		"of a lock that ran out":  {{0, state{kind: KindMutex, holds: "a", left: time.Nanosecond}, 0}, {1, held("b"), 0}},
		"of the last of readers":  {{0, state{kind: KindRWLock, holds: "ab", left: time.Minute}, 0}, {1, free, 0}, {1, free, 1}},
		"of a writer, and others": {{0, state{kind: KindRWLock, holds: "a!", left: time.Minute}, 0}, {3, free, 2}},
	} {
		var l ledger
		before := free
		for n, s := range tc {
			f := inspect.OfLocks
			if before.kind == KindRWLock || strings.Contains(what, "readers") || strings.Contains(what, "writer") {
				f = inspect.OfRW
			}
			l.heard[f] += s.heard
			b, a := before.inspection(t), s.to.inspection(t)
			events := between(Compare(b, a), l.unseen(b, a, Compare(b, a)))
			got := 0
			if at := slices.IndexFunc(events, func(e Event) bool { return e.What == EventUnseen }); at >= 0 {
				got = events[at].Times
			}
			redistest.Equal(t, got, s.want, "%d unseen, want %d (%s, step %d)", s.want, what, n)
			before = s.to
		}
	}
}
