// Which things others waited for when they were released, or wait for outside the queue.

package engine

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// lately is for how long a thing counts as awaited after others waited for it.
const lately = 10 * time.Second

// awaited remembers that of keys, by a mark for many: a hint by which a release
// chooses whether it is to hand the thing over at once, or asks first, with less,
// whether anybody waits.
type awaited struct {
	seed  maphash.Seed
	marks marks // when others waited
	open  marks // when it was left open
}

// marks are ages of the Client, never 0 once they are set.
type marks [256]atomic.Int64

func (a *awaited) mark(key string) *atomic.Int64 { return a.in(&a.marks, key) }

func (a *awaited) in(m *marks, key string) *atomic.Int64 {
	return &m[maphash.String(a.seed, key)%uint64(len(m))]
}

// NoteAwaited notes that others wait for key.
func (e *Engine) NoteAwaited(key string) { e.awaited.mark(key).Store(int64(e.Age()) | 1) }

// Awaited reports whether others may wait for key: they did lately, or some of this
// Client do.
func (e *Engine) Awaited(key string) bool {
	if at := e.awaited.mark(key).Load(); at != 0 && e.Age() < time.Duration(at)+lately {
		return true
	}
	e.lines.mu.Lock()
	defer e.lines.mu.Unlock()
	return e.lines.byKey[key] != nil
}

// openFor is for how long a release leaves a thing to those outside the queue.
const openFor = 3 * time.Millisecond

// NoteOpen notes that a release of this Client has just left key to those outside the
// queue.
func (e *Engine) NoteOpen(key string) { e.awaited.in(&e.awaited.open, key).Store(int64(e.Age()) | 1) }

// leftOpen reports whether key is left to those outside the queue. This Client's next
// waiter then goes through the queue, where Redis keeps it back for that moment; its
// first try would take the thing from under their noses.
func (e *Engine) leftOpen(key string) bool {
	at := e.awaited.in(&e.awaited.open, key).Load()
	return at != 0 && e.Age() < time.Duration(at)+openFor
}
