// Passing a thing on within the process, from a holder to a waiter.

package line

import (
	"github.com/holdfast-go/holdfast/internal/pubsub"
)

// Pass gives what a holder of this process has to a waiter for key, if there is one on the same
// terms, and reports whether it did. The waiter finds it in Outcome.Passed. If the
// waiter is just giving up, it has it all the same.
//
// The waiter is the first one behind the head, or the head if nobody is behind it. The head keeps
// the process's place in Redis's queue, and is granted the thing from there when it is no longer
// passed on. Nothing is passed to a waiter that is just asking Redis.
func (l *Lines) Pass(key string, terms Terms, what any) bool {
	done, told, ended := l.pass(key, terms, what)
	if ended != nil {
		ended.Close()
	}
	if told != nil {
		told <- struct{}{}
	}
	return done
}

// pass is Pass, except for what must be done without the mutex, which it leaves to its caller: to
// signal the waiter on told (nil if the waiter does not listen yet), and to close ended, the
// subscription of a line that has ended.
func (l *Lines) pass(key string, terms Terms, what any) (done bool, told chan struct{}, ended *pubsub.Subscription) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.byKey[key]
	if q == nil || q.head == nil {
		return false, nil, nil
	}
	me := q.head
	if me.next != nil {
		me = me.next
	}
	if me.head.asking || me.terms != terms {
		return false, nil, nil
	}
	me.outcome.Passed, told = what, me.head.passed
	if me != q.head {
		me.granted, told = true, me.turn
	}
	return true, told, l.remove(me)
}
