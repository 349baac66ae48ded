// Remembers which keys were waited for lately, which were just left open, and which other processes
// have had lately.

package line

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// lately is how long a key counts as awaited after others were last known to wait for it.
const lately = 10 * time.Second

// awaited remembers when others last waited for a key, and when a release last left it open. Keys
// share a small table by their hash, so one mark stands for many keys. It is a hint: a release uses
// it to choose between handing the thing over at once and first trying a cheaper script, which asks
// whether anybody waits.
type awaited struct {
	seed  maphash.Seed
	start time.Time // when the table was made
	marks marks     // when others were last known to wait
	open  marks     // when a release last left it open
	// shared counts down the grants for which a key still counts as shared with other processes:
	// see Passes.
	shared marks
}

// marks are times, as ages of the table, except in shared. A mark that has been set is never 0.
type marks [256]atomic.Int64

func (a *awaited) in(m *marks, key string) *atomic.Int64 {
	return &m[maphash.String(a.seed, key)%uint64(len(m))]
}

func (a *awaited) age() time.Duration { return time.Since(a.start) }

// note marks the key, now.
func (a *awaited) note(m *marks, key string) { a.in(m, key).Store(int64(a.age()) | 1) }

// noted reports whether the key was marked within the last d.
func (a *awaited) noted(m *marks, key string, d time.Duration) bool {
	at := a.in(m, key).Load()
	return at != 0 && a.age() < time.Duration(at)+d
}

// NoteAwaited notes that others wait for key.
func (l *Lines) NoteAwaited(key string) { l.awaited.note(&l.awaited.marks, key) }

// ForgetAwaited notes that nobody else waits for key.
func (l *Lines) ForgetAwaited(key string) { l.awaited.in(&l.awaited.marks, key).Store(0) }

// Awaited reports whether others may wait for key: they were known to wait lately, or this Client
// has a line for key.
func (l *Lines) Awaited(key string) bool {
	return l.awaited.noted(&l.awaited.marks, key, lately) || !l.empty(key)
}

// openFor is how long an open release leaves a thing to those outside the queue.
const openFor = 3 * time.Millisecond

// NoteOpen notes that this Client has just made an open release of key.
func (l *Lines) NoteOpen(key string) { l.awaited.note(&l.awaited.open, key) }

// leftOpen reports whether key is left to those outside the queue at present. If it is, this
// Client's next waiter goes through the queue, where Redis holds it back until that moment is over.
// A first try outside the queue would snatch the thing from those it was left to.
func (l *Lines) leftOpen(key string) bool { return l.awaited.noted(&l.awaited.open, key, openFor) }
