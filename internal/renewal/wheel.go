// A hashed timing wheel: it knows which entry comes next. It is a pure data structure, without
// a goroutine, a clock or a lock of its own.

package renewal

import "math/bits"

// position says in which list of the wheel an entry is.
type position uint8

const (
	nowhere  position = iota
	slotted           // in the slot of its tick
	due               // its tick has come
	recalled          // taken out of turn by Recall
)

// Entry is one task's place on the wheel. The task embeds it by value, so that adding, moving
// and removing allocate nothing. The zero value is ready for use. An Entry must not be copied
// once used, and belongs to one Scheduler for its life.
type Entry struct {
	next, prev *Entry
	task       Task  // the task that has this entry; the wheel does not look at it
	tick       int64 // absolute, even if more than one turn away
	position   position
	firing     bool // Tick or Suspect is running, and its answer counts; see Scheduler
}

// list is a circular list of entries, first in, first out.
type list struct{ head *Entry }

func (l *list) push(e *Entry) {
	if l.head == nil {
		e.next, e.prev = e, e
		l.head = e
		return
	}
	e.next, e.prev = l.head, l.head.prev
	e.prev.next, e.next.prev = e, e
}

func (l *list) remove(e *Entry) {
	if e.next == e {
		l.head = nil
	} else {
		e.prev.next, e.next.prev = e.next, e.prev
		if l.head == e {
			l.head = e.next
		}
	}
	e.next, e.prev = nil, nil
}

// Wheel orders entries by tick. Each slot holds the entries of one tick of the turn. An entry
// that is further than a turn away is in its slot too, and is passed over until its turn comes.
// A Wheel is not safe for concurrent use.
type Wheel struct {
	slots    []list
	occupied []uint64 // one bit per slot
	ready    list     // entries whose tick has come
	called   list     // those recalled
	passed   int64    // the last tick whose slot was emptied into ready
	len      int
}

// NewWheel returns an empty wheel on which every tick up to and including now has passed. The
// number of slots must be a power of two, at least 64.
func NewWheel(slots int, now int64) *Wheel {
	if slots < 64 || slots&(slots-1) != 0 {
		panic("renewal: the number of slots must be a power of two, at least 64")
	}
	return &Wheel{
		slots:    make([]list, slots),
		occupied: make([]uint64, slots/64),
		passed:   now,
	}
}

// Len returns how many entries the wheel holds.
func (w *Wheel) Len() int { return w.len }

// Set puts e at tick, whether or not e is on the wheel. A tick that has passed is due at the
// next Pop. A recalled entry stays where it is: it is about to be popped, and the caller of Pop
// places it anew.
func (w *Wheel) Set(e *Entry, tick int64) {
	if e.position == recalled {
		e.tick = tick
		return
	}
	w.Remove(e)
	e.tick = tick
	w.len++
	if tick <= w.passed {
		e.position = due
		w.ready.push(e)
		return
	}
	e.position = slotted
	slot := w.slot(tick)
	w.slots[slot].push(e)
	w.occupied[slot/64] |= 1 << (slot % 64)
}

// Remove takes e off the wheel and reports whether it was there.
func (w *Wheel) Remove(e *Entry) bool {
	switch e.position {
	case nowhere:
		return false
	case slotted:
		w.removeSlotted(e)
	case recalled:
		w.called.remove(e)
	default:
		w.ready.remove(e)
	}
	e.position = nowhere
	w.len--
	return true
}

// Pop removes the first entry that is due at now. Entries come in the order of their ticks, and
// within one tick in the order in which they were set. Entries that Recall made due come after those, so
// that they hold nobody up; for them wasRecalled is true. Pop returns nil if none is due.
func (w *Wheel) Pop(now int64) (e *Entry, wasRecalled bool) {
	for w.ready.head == nil && w.turn(now) {
	}
	e = w.ready.head
	if e == nil {
		e = w.called.head
	}
	if e == nil {
		return nil, false
	}
	wasRecalled = e.position == recalled
	w.Remove(e)
	return e, wasRecalled
}

// Next returns a tick before which no entry is due, and false if the wheel is empty. It is the
// tick of the next occupied slot. If that slot's entry is further than a turn away, it is early
// by a whole number of turns.
func (w *Wheel) Next() (tick int64, ok bool) {
	if w.ready.head != nil || w.called.head != nil {
		return w.passed, true
	}
	return w.nextOccupied()
}

// Recall makes every entry due at once, in the order of the slots.
func (w *Wheel) Recall() {
	for e := w.ready.head; e != nil; e = w.ready.head {
		w.ready.remove(e)
		e.position = recalled
		w.called.push(e)
	}
	// Entries that are due come before those that are not, and the slots follow in order from
	// the present one on. That is nearly the order of their ticks.
	for tick, ok := w.nextOccupied(); ok; tick, ok = w.nextOccupied() {
		slot := &w.slots[w.slot(tick)]
		for e := slot.head; e != nil; e = slot.head {
			w.removeSlotted(e)
			e.position = recalled
			w.called.push(e)
		}
	}
}

// turn moves on to the next occupied slot, but not beyond now, and makes its entries due. It
// reports false once now has passed.
func (w *Wheel) turn(now int64) bool {
	if w.passed >= now {
		return false
	}
	tick, ok := w.nextOccupied()
	if !ok || tick > now {
		w.passed = now
		return false
	}
	w.passed = tick
	slot := &w.slots[w.slot(tick)]
	last := slot.head.prev
	for e, done := slot.head, false; !done; {
		next := e.next
		done = e == last
		if e.tick == tick {
			w.removeSlotted(e)
			e.position = due
			w.ready.push(e)
		}
		e = next
	}
	return true
}

// nextOccupied returns the first tick after passed whose slot holds an entry of any turn.
func (w *Wheel) nextOccupied() (tick int64, ok bool) {
	from := w.slot(w.passed + 1)
	word := from / 64
	set := w.occupied[word] &^ (1<<(from%64) - 1)
	for range len(w.occupied) + 1 { // the first word twice: its upper bits, its lower bits
		if set != 0 {
			slot := word*64 + bits.TrailingZeros64(set)
			return w.passed + 1 + int64((slot-from)&(len(w.slots)-1)), true
		}
		word = (word + 1) & (len(w.occupied) - 1)
		set = w.occupied[word]
	}
	return 0, false
}

func (w *Wheel) removeSlotted(e *Entry) {
	slot := w.slot(e.tick)
	w.slots[slot].remove(e)
	if w.slots[slot].head == nil {
		w.occupied[slot/64] &^= 1 << (slot % 64)
	}
}

func (w *Wheel) slot(tick int64) int { return int(tick) & (len(w.slots) - 1) }
