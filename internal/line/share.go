// How often a process that does not have a thing alone passes it on: by how many of its goroutines
// want it.

package line

const (
	// passesEach is how many times a process that shares a thing with others passes it on at
	// most, for each of its goroutines that wants it.
	passesEach = 8
	// sharedTurns is the number of grants for which a process counts as sharing, after a release of
	// its own has handed the thing to another process. The other process needs a few round trips
	// before it is in the queue again, and this process may be granted the thing several times
	// until then.
	sharedTurns = 8
)

// NoteShared notes that a release of this process has handed key to another process.
func (l *Lines) NoteShared(key string) { l.awaited.in(&l.awaited.shared, key).Store(sharedTurns) }

// Passes returns how many times the thing that Redis has just granted to a goroutine of this process
// may be passed on in the process. That is the argument most if no other process has had the thing
// lately. Otherwise it is in proportion to the goroutines of this process that want it, and no more
// than most: without that, a goroutine with one other in its process would have it hundreds of
// times as often as one that is alone in its process.
func (l *Lines) Passes(key string, most int64) int64 {
	left := l.awaited.in(&l.awaited.shared, key)
	turns := left.Load()
	if turns == 0 {
		return most
	}
	left.CompareAndSwap(turns, turns-1)
	l.mu.Lock()
	defer l.mu.Unlock()
	passes := int64(passesEach) // for the one to which it was granted
	if q := l.byKey[key]; q != nil {
		for at := q.head; at != nil && passes < most; at = at.next {
			passes += passesEach
		}
	}
	return min(passes, most)
}
