package renewal

import (
	"math"
	"math/rand"
	"slices"
	"testing"
	"time"
)

// model is the wheel as a list: what is on it, and where each entry is in the order in which they are popped.
// It is slow, but simple enough to be trusted.
type model map[*Entry]place

// place is compared from left to right. Those whose tick had passed when they were set come first, in the order
// of their setting; then the others, by tick and by the order of their setting. Recalled entries come last, in an
// order that is not promised.
type place [3]int64

const (
	wasDue = iota
	onTime
	wasRecalled
)

// due takes out what is due at now, in order.
func (m model) due(now int64) (all []*Entry, at []place) {
	for e, p := range m {
		if p[0] != onTime || p[1] <= now {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *Entry) int { return slices.Compare(sliced(m[a]), sliced(m[b])) })
	for _, e := range all {
		at = append(at, m[e])
		delete(m, e)
	}
	return all, at
}

func sliced(p place) []int64 { return p[:] }

func TestWheelAgreesWithAList(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewSource(seed))
	for range 30 {
		agreeWithAList(t, rng)
	}
}

func agreeWithAList(t *testing.T, rng *rand.Rand) {
	const slots = 64
	now := rng.Int63n(1000)
	w, m := NewWheel(slots, now), model{}
	entries := make([]Entry, 1+rng.Intn(60))
	for step := range int64(1500) {
		e := &entries[rng.Intn(len(entries))]
		switch rng.Intn(6) {
		case 0, 1, 2:
			tick := now - 3 + rng.Int63n(1+[]int64{8, slots, 5 * slots}[rng.Intn(3)])
			w.Set(e, tick)
			switch p, there := m[e]; {
			case there && p[0] == wasRecalled:
			case tick <= now:
				m[e] = place{wasDue, step, tick}
			default:
				m[e] = place{onTime, tick, step}
			}
		case 3:
			_, want := m[e]
			if delete(m, e); w.Remove(e) != want {
				t.Fatalf("step %d: Remove = %v, want %v", step, !want, want)
			}
		case 4:
			now += rng.Int63n([]int64{2, slots / 2, 3 * slots}[rng.Intn(3)])
			popAll(t, step, w, m, now)
		case 5:
			if rng.Intn(20) == 0 {
				w.Recall()
				for e := range m {
					m[e] = place{wasRecalled}
				}
			}
		}
		checkNext(t, step, w, m, now, slots)
	}
	popAll(t, -1, w, m, now+1<<20)
	if w.Len() != 0 || slices.ContainsFunc(w.occupied, func(b uint64) bool { return b != 0 }) {
		t.Fatalf("the emptied wheel has %d entries, occupied slots %b", w.Len(), w.occupied)
	}
}

func popAll(t *testing.T, step int64, w *Wheel, m model, now int64) {
	t.Helper()
	want, at := m.due(now)
	var got []*Entry
	for e, recalled := w.Pop(now); e != nil; e, recalled = w.Pop(now) {
		i := slices.Index(want, e)
		if i < 0 || recalled != (at[i][0] == wasRecalled) || !recalled && i != len(got) {
			t.Fatalf("step %d: entry %d popped at %d, recalled %v, is number %d of %d: %v", step, len(got), now, recalled, i, len(want), at)
		}
		got = append(got, e)
	}
	if len(got) != len(want) {
		t.Fatalf("step %d: popped %d entries at %d, want %d", step, len(got), now, len(want))
	}
}

// checkNext checks that Next is never after the earliest entry, and that wasted wake-ups before
// that entry take less than a turn. Next is exact, or a tick of the same slot.
func checkNext(t *testing.T, step int64, w *Wheel, m model, now, slots int64) {
	t.Helper()
	earliest, slotted := int64(math.MaxInt64), make(map[int64]bool)
	for _, p := range m {
		if p[0] == wasRecalled {
			return
		}
		tick := max(p[1], now)
		if p[0] == wasDue {
			tick = now
		}
		earliest, slotted[tick%slots] = min(earliest, tick), true
	}
	next, ok := w.Next()
	if w.Len() != len(m) || ok != (len(m) > 0) || next > earliest {
		t.Fatalf("step %d: Next = %d, %v with %d entries, want %d, %d", step, next, ok, w.Len(), len(m), earliest)
	}
	if earliest > now && earliest-now <= slots && ok && next != earliest && !slotted[next%slots] {
		t.Fatalf("step %d: Next = %d, a slot without entry", step, next)
	}
}
