// Passing a thing on within the process, from a holder to a waiter.

package line

// Pass gives what a holder of this process has to a waiter for key, if there is one on the same
// terms, and reports whether it did. The waiter finds it in Outcome.Passed. If the
// waiter is just giving up, it has it all the same.
//
// The waiter is the first one behind the head, or the head if nobody is behind it. The head keeps
// the process's place in Redis's queue, and is granted the thing from there when it is no longer
// passed on. Nothing is passed to a waiter that is just asking Redis.
func (l *Lines) Pass(key string, terms Terms, what any) bool {
	l.mu.Lock()
	q := l.byKey[key]
	if q == nil || q.head == nil {
		l.mu.Unlock()
		return false
	}
	me := q.head
	if me.next != nil {
		me = me.next
	}
	if me.head.asking || me.terms != terms {
		l.mu.Unlock()
		return false
	}
	me.outcome.Passed = what
	signal := me.head.passed // nil if it does not listen yet
	if me != q.head {
		me.granted, signal = true, me.turn
	}
	l.unlock(l.remove(me))
	if signal != nil {
		signal <- struct{}{}
	}
	return true
}
