// Waiters for what Redis keeps no queue for: a head asks, and those behind it wait.

package line

type unqueued struct{}

func (unqueued) arrive(*Lines, string) (ask Ask, held, asks bool)           { return Ask{}, false, true }
func (unqueued) stand(*line, *waiter)                                       {}
func (unqueued) first(me *waiter) pause                                     { return me.line.held(me.first) }
func (unqueued) rest(*Lines, *waiter, waking) pause                         { return pause{} }
func (unqueued) ask(*Lines, *waiter) (ask Ask, more, ok bool)               { return Ask{}, false, true }
func (unqueued) answered(*Lines, *waiter, Ask, Answer, error) (nudged bool) { return false }
func (unqueued) handed(*waiter, HandOver) bool                              { return false }
func (unqueued) leave(*line, *waiter)                                       {}
