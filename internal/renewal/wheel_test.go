package renewal

import (
	"cmp"
	"math/rand"
	"slices"
	"testing"
	"time"
)

// model is the wheel as a list. It is slow, but simple enough to be trusted.
type model struct {
	now   int64
	items []item
}

type item struct {
	e        *Entry
	tick     int64
	order    int // the order of becoming due, then of being set
	due      bool
	recalled bool
}

func (m *model) set(e *Entry, tick int64, order int) {
	if i := m.index(e); i >= 0 && m.items[i].recalled {
		return
	}
	m.remove(e)
	m.items = append(m.items, item{e: e, tick: tick, order: order, due: tick <= m.now})
}

func (m *model) remove(e *Entry) bool {
	i := m.index(e)
	if i < 0 {
		return false
	}
	m.items = slices.Delete(m.items, i, i+1)
	return true
}

func (m *model) index(e *Entry) int {
	return slices.IndexFunc(m.items, func(it item) bool { return it.e == e })
}

// pop returns what is due at now, in order.
func (m *model) pop(now int64) []item {
	var out, rest []item
	for _, it := range m.items {
		if it.recalled || it.tick <= max(now, m.now) {
			out = append(out, it)
		} else {
			rest = append(rest, it)
		}
	}
	slices.SortStableFunc(out, func(a, b item) int {
		switch {
		case a.recalled || b.recalled: // these come first, in an order that is not promised
			return cmp.Compare(rank(b.recalled), rank(a.recalled))
		case a.due && b.due: // both were set after their tick had passed: they come in that order
			return cmp.Compare(a.order, b.order)
		case a.due || b.due:
			return cmp.Compare(rank(b.due), rank(a.due))
		}
		return cmp.Or(cmp.Compare(a.tick, b.tick), cmp.Compare(a.order, b.order))
	})
	m.items, m.now = rest, max(now, m.now)
	return out
}

func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (m *model) earliest() (int64, bool) {
	var ticks []int64
	for _, it := range m.items {
		ticks = append(ticks, it.tick)
	}
	if len(ticks) == 0 {
		return 0, false
	}
	return slices.Min(ticks), true
}

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
	w, m := NewWheel(slots, now), &model{now: now}
	entries := make([]Entry, 1+rng.Intn(60))

	for step := range 1500 {
		e := &entries[rng.Intn(len(entries))]
		switch rng.Intn(6) {
		case 0, 1, 2:
			tick := now - 3 + rng.Int63n(1+[]int64{8, slots, 5 * slots}[rng.Intn(3)])
			w.Set(e, tick)
			m.set(e, tick, step)
		case 3:
			if got, want := w.Remove(e), m.remove(e); got != want {
				t.Fatalf("step %d: Remove = %v, want %v", step, got, want)
			}
		case 4:
			now += rng.Int63n([]int64{2, slots / 2, 3 * slots}[rng.Intn(3)])
			popAll(t, step, w, m, now)
		case 5:
			if rng.Intn(20) == 0 {
				w.Recall()
				for i := range m.items {
					m.items[i].recalled = true
				}
			}
		}
		checkNext(t, step, w, m, slots)
	}
	popAll(t, -1, w, m, now+1<<20)
	if w.Len() != 0 || slices.ContainsFunc(w.occupied, func(b uint64) bool { return b != 0 }) {
		t.Fatalf("the emptied wheel has %d entries, occupied slots %b", w.Len(), w.occupied)
	}
}

func popAll(t *testing.T, step int, w *Wheel, m *model, now int64) {
	t.Helper()
	want := m.pop(now)
	wasRecalled := make(map[*Entry]bool)
	for i := 0; ; i++ {
		e, recalled := w.Pop(now)
		if e == nil {
			if i != len(want) {
				t.Fatalf("step %d: popped %d entries at %d, want %d", step, i, now, len(want))
			}
			break
		}
		if i >= len(want) {
			t.Fatalf("step %d: popped an entry that is not due at %d", step, now)
		}
		if recalled {
			wasRecalled[e] = true
		} else if want[i].e != e {
			t.Fatalf("step %d: entry %d popped at %d has tick %d, want %d", step, i, now, e.tick, want[i].tick)
		}
	}
	for _, it := range want {
		if wasRecalled[it.e] != it.recalled {
			t.Fatalf("step %d: recalled = %v, want %v", step, wasRecalled[it.e], it.recalled)
		}
	}
}

// checkNext checks that Next is never after the earliest entry, and that wasted wake-ups before
// that entry take less than a turn. Next is exact, or a tick of the same slot.
func checkNext(t *testing.T, step int, w *Wheel, m *model, slots int64) {
	t.Helper()
	if w.Len() != len(m.items) {
		t.Fatalf("step %d: Len = %d, want %d", step, w.Len(), len(m.items))
	}
	next, ok := w.Next()
	earliest, some := m.earliest()
	if ok != some {
		t.Fatalf("step %d: Next ok = %v with %d entries", step, ok, len(m.items))
	}
	if !ok || slices.ContainsFunc(m.items, func(it item) bool { return it.recalled }) {
		return
	}
	if next > max(earliest, m.now) {
		t.Fatalf("step %d: Next = %d, after an entry at %d", step, next, earliest)
	}
	if earliest > m.now && earliest-m.now <= slots && next != earliest {
		// Within a turn, Next is exact unless the slot of a later entry comes before.
		if !slices.ContainsFunc(m.items, func(it item) bool { return (it.tick-next)%slots == 0 }) {
			t.Fatalf("step %d: Next = %d, a slot without entry", step, next)
		}
	}
}

func TestWheelDoesNotAllocate(t *testing.T) {
	w := NewWheel(slotCount, 0)
	entries := make([]Entry, 100)
	now := int64(0)
	allocs := testing.AllocsPerRun(100, func() {
		for i := range entries {
			w.Set(&entries[i], now+int64(i)*100)
			w.Set(&entries[i], now+int64(i)*50)
		}
		now += 10_000
		for e, _ := w.Pop(now); e != nil; e, _ = w.Pop(now) {
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}

func TestNewWheelRefusesSlotsThatAreNoPowerOfTwo(t *testing.T) {
	for _, slots := range []int{-64, 0, 1, 63, 65, 96} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("NewWheel(%d) did not panic", slots)
				}
			}()
			NewWheel(slots, 0)
		}()
	}
}
