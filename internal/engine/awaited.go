// Which things others waited for when they were released.

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
	marks [256]atomic.Int64 // the Client's age, never 0 once it is set
}

func (a *awaited) mark(key string) *atomic.Int64 {
	return &a.marks[maphash.String(a.seed, key)%uint64(len(a.marks))]
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
