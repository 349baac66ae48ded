// Two inspections of one name tell what has happened in between.

package holdfast

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// owner returns the owner of a letter.
func owner(t *testing.T, letter byte) Owner {
	t.Helper()
	o, err := ParseOwner(fmt.Sprintf("%c%c%c%c%c%c%c%c-1111-8111-8111-111111111111:1",
		letter, letter, letter, letter, letter, letter, letter, letter))
	if err != nil {
		t.Fatal(err)
	}
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
		want          []string
	}{
		"nothing": {
			state{kind: free},
			state{kind: free, second: 1},
			nil,
		},
		"held on": {
			state{kind: mutex, holds: "a", left: long},
			state{kind: mutex, second: 9, holds: "a", left: long},
			nil,
		},
		"a grant": {
			state{kind: free},
			state{kind: mutex, holds: "a", left: long},
			[]string{"granted a"},
		},
		"a release": {
			state{kind: mutex, holds: "a", left: long},
			state{kind: free, second: 1},
			[]string{"released a"},
		},
		"a hold without end": {
			state{kind: mutex, holds: "a", left: NoExpiry},
			state{kind: free, second: 99},
			[]string{"released a"},
		},
		"its time was over": {
			state{kind: mutex, holds: "a", left: time.Second},
			state{kind: free, second: 1},
			[]string{"expired a"},
		},
		"over, to within a ms": {
			state{kind: mutex, holds: "a", left: time.Second + time.Millisecond},
			state{kind: free, second: 1},
			[]string{"expired a"},
		},
		"a hand-over": {
			state{kind: mutex, holds: "a", left: long, waits: "b"},
			state{kind: mutex, holds: "b", second: 1, left: long},
			[]string{"passed ab"},
		},
		"over, and the next": {
			state{kind: mutex, holds: "a", left: time.Second},
			state{kind: mutex, holds: "b", second: 2, left: long},
			[]string{"expired a", "granted b"},
		},
		"another leads": {
			state{kind: lead, holds: "a", left: long},
			state{kind: mutex, holds: "b", second: 1, left: long},
			[]string{"passed ab"},
		},
		"two come to wait": {
			state{kind: mutex, holds: "a", left: long},
			state{kind: mutex, holds: "a", left: long, waits: "bc"},
			[]string{"waits b", "waits c"},
		},
		"one waits on": {
			state{kind: mutex, holds: "a", left: long, waits: "b"},
			state{kind: mutex, holds: "a", left: long, waits: "cb"},
			[]string{"waits c"},
		},
		"readers come and go": {
			state{kind: rw, holds: "ab", left: long},
			state{kind: rw, holds: "bc", second: 1, left: long},
			[]string{"released a", "granted c"},
		},
		"a writer follows readers": {
			state{kind: rw, holds: "ab", left: long},
			state{kind: rw, holds: "c!", second: 1, left: long},
			[]string{"released a", "released b", "granted c"},
		},
		"a writer follows a writer": {
			state{kind: rw, holds: "a!", left: long},
			state{kind: rw, holds: "b!", second: 1, left: long},
			[]string{"passed ab"},
		},
		"a writer becomes a reader": {
			state{kind: rw, holds: "a!a", left: long},
			state{kind: rw, holds: "a", second: 1, left: long},
			[]string{"released a"},
		},
		"permits": {
			state{kind: permits, permits: []string{"1", "2"}, left: long, value: 1, taken: 2},
			state{kind: permits, permits: []string{"2", "3"}, left: long, value: 1, taken: 2},
			[]string{"released 1", "granted 3"},
		},
		"the last permit": {
			state{kind: permits, permits: []string{"1"}, left: long, value: 2, taken: 1},
			state{kind: count, value: 3},
			[]string{"released 1"},
		},
		"more permits": {
			state{kind: permits, permits: []string{"1"}, left: long, value: 2, taken: 1},
			state{kind: permits, permits: []string{"1"}, left: long, value: 4, taken: 1},
			[]string{"counted 5/0 was 3"},
		},
		"a semaphore": {
			state{kind: sem, value: 3, all: 5},
			state{kind: sem, value: 1, all: 5},
			[]string{"counted 1/5 was 3"},
		},
		"a semaphore, more in all": {
			state{kind: sem, value: 3, all: 5},
			state{kind: sem, value: 3, all: 6},
			[]string{"counted 3/6 was 3"},
		},
		"a semaphore that is known": {
			state{kind: count, value: 3},
			state{kind: sem, value: 3, all: 5},
			nil,
		},
		"a latch is set": {
			state{kind: free},
			state{kind: latch, value: 3},
			[]string{"counted 3/0 was 0"},
		},
		"a latch counts": {
			state{kind: latch, value: 3},
			state{kind: latch, value: 2},
			[]string{"counted 2/0 was 3"},
		},
		"a latch comes to zero": {
			state{kind: latch, value: 1},
			state{kind: free},
			[]string{"counted 0/0 was 1"},
		},
		"a party comes": {
			state{kind: barrier, state: "open", value: 1, all: 3, waits: "a"},
			state{kind: barrier, state: "open", value: 2, all: 3, waits: "ab"},
			[]string{"counted 2/3 was 1", "waits b"},
		},
		"a barrier trips": {
			state{kind: barrier, state: "open", value: 2, all: 3},
			state{kind: barrier, state: "tripped"},
			[]string{"tripped "},
		},
		"a barrier breaks": {
			state{kind: barrier, state: "open", value: 2, all: 3},
			state{kind: barrier, state: "broken"},
			[]string{"broken "},
		},
		"the next generation": {
			state{kind: barrier, state: "tripped"},
			state{kind: barrier, state: "open", value: 1, all: 3},
			[]string{"counted 1/3 was 0"},
		},
		"work begins": {
			state{kind: free},
			state{kind: once, state: "working", holds: "a", left: long},
			[]string{"granted a"},
		},
		"work is done": {
			state{kind: once, state: "working", holds: "a", left: long},
			state{kind: once, state: "done", second: 1},
			[]string{"done a"},
		},
		"work fails": {
			state{kind: once, state: "working", holds: "a", left: long},
			state{kind: once, state: "failed", second: 1},
			[]string{"failed a"},
		},
		"work that was not seen": {
			state{kind: free},
			state{kind: once, state: "done"},
			[]string{"done "},
		},
		"work is given up": {
			state{kind: once, state: "working", holds: "a", left: long},
			state{kind: free, second: 1},
			[]string{"released a"},
		},
		"a worker dies, another does": {
			state{kind: once, state: "working", holds: "a", left: time.Second},
			state{kind: once, state: "working", holds: "b", left: long, second: 1},
			[]string{"expired a", "granted b"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			events := Compare(tc.before.inspection(t), tc.after.inspection(t))
			if got := told(events); !slices.Equal(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
			for _, e := range events {
				if e.Name != "x" || e.Kind == free || e.At.IsZero() {
					t.Errorf("%+v", e)
				}
			}
		})
	}
}
