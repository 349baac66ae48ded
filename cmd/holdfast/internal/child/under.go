// Under: a program runs while something is held.

package child

import (
	"errors"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Hold is what the program runs under.
type Hold struct {
	// Deadline returns when the hold ends unless it is renewed. Redis grants it to nobody else before.
	Deadline func() time.Time
	// Done is closed when the hold has ended.
	Done <-chan struct{}
}

// Rules say how the program ends when the hold does.
type Rules struct {
	// Grace is how long the program has between SIGTERM and SIGKILL.
	Grace time.Duration
	// Margin is how long before the deadline SIGKILL is sent at the latest.
	Margin time.Duration
	// Leave lets the program go on without the hold.
	Leave bool
	// Told is called when the program is ended, or would be, on a goroutine of its own: it may write to a terminal that
	// somebody has stopped, or to a log that is full. The program is ended all the same. Under returns when Told has.
	Told func()
}

// ErrAsked says that this process was asked to end before the program began.
var ErrAsked = errors.New("asked to end")

// ErrOver says that the hold was over before the program began: this process was stopped, or starved, since the grant.
var ErrOver = errors.New("over before the program began")

// settle is how often a process group whose leader has ended is looked at.
const settle = 10 * time.Millisecond

// Outcome is how a program has ended.
type Outcome struct {
	// Code is its exit code: 128+n if signal n ended it.
	Code int
	// Lost says that the hold was about to end, or had ended, before the program.
	Lost bool
	// Key is SIGINT or SIGQUIT if a key at the terminal has ended the program; otherwise 0. The process group of this
	// process has not got that signal: see Resend.
	Key syscall.Signal
}

// Under runs the program until it ends. If the hold is about to end, or has ended, without the program, Under ends
// the whole process group. If the program could not be started, the error is a NotStarted.
func Under(r *Relay, hold Hold, p Program, rules Rules) (Outcome, error) {
	signals := make(chan syscall.Signal, 64)
	if r.passTo(signals) {
		r.passTo(nil)
		return Outcome{}, ErrAsked
	}
	defer r.passTo(nil)
	if over(hold, rules) {
		return Outcome{}, ErrOver
	}
	c, err := start(p)
	if err != nil {
		return Outcome{}, err
	}
	// The program may have the terminal. Where stty tostop is set, Told's line would stop this process, and nobody would
	// kill the program.
	defer ignore(unix.SIGTTOU)()
	w := &watch{child: c, hold: hold, rules: rules}
	w.until(signals)
	c.terminal.close()
	w.telling.Wait()
	return Outcome{c.code(), w.lost, w.key}, nil
}

// over reports whether a hold has ended, or is about to.
func over(hold Hold, rules Rules) bool {
	select {
	case <-hold.Done:
		return true
	default:
		return time.Until(hold.Deadline()) <= rules.Margin
	}
}

// watch is one program under its hold.
type watch struct {
	child  *child
	hold   Hold
	rules  Rules
	lost   bool
	key    syscall.Signal
	kill   *time.Timer // set once the program is being ended
	killed bool        // SIGKILL was sent

	telling sync.WaitGroup // of Told
}

// until watches until the program has ended, and nothing is left of a process group that was ended.
func (w *watch) until(signals <-chan syscall.Signal) {
	c := w.child
	end := time.NewTimer(w.left())
	defer end.Stop()
	w.kill = time.NewTimer(0)
	w.kill.Stop()
	defer w.kill.Stop()
	ended := w.hold.Done
	for {
		select {
		case <-c.done:
			w.key = w.pressed()
			w.takeTerminal()
			if w.lost && !w.rules.Leave {
				w.bury()
			}
			return
		case s := <-signals:
			w.take(s)
		case s := <-c.stops:
			w.stopped(s)
		case <-ended:
			ended = nil
			w.end()
		case <-end.C:
			if left := w.left(); left > 0 {
				end.Reset(left)
			} else {
				w.end()
			}
		case <-w.kill.C:
			w.killAll()
		}
	}
}

// killAll kills the process group.
func (w *watch) killAll() {
	w.killed = true
	w.child.signal(unix.SIGKILL)
}

// left returns how long it is until the program must be asked to end, unless the hold is renewed.
func (w *watch) left() time.Duration {
	return time.Until(w.hold.Deadline().Add(-w.rules.Margin - w.rules.Grace))
}

// end ends the process group, unless it may go on, or is being ended already.
func (w *watch) end() {
	if w.lost {
		return
	}
	w.lost = true
	w.telling.Go(w.rules.Told)
	if w.rules.Leave {
		return
	}
	grace := min(w.rules.Grace, time.Until(w.hold.Deadline().Add(-w.rules.Margin)))
	if grace > 0 {
		w.child.signal(unix.SIGTERM)
		w.child.signal(unix.SIGCONT) // it may be stopped
		w.kill.Reset(grace)
		return
	}
	w.killAll() // this process was stopped for too long: the program may not take one step more
}

// bury waits, for as long as the grace allows, until the rest of the process group has ended too.
func (w *watch) bury() {
	look := time.NewTicker(settle)
	defer look.Stop()
	for !w.killed && w.child.signal(0) {
		select {
		case <-look.C:
		case <-w.kill.C:
			w.killAll()
		}
	}
}

// take takes in a signal that this process got.
func (w *watch) take(s syscall.Signal) {
	switch s {
	case unix.SIGTSTP:
		w.child.signal(unix.SIGSTOP) // it may not work on while nobody renews
		w.suspend()
	case unix.SIGCONT:
		w.resume()
	case unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM:
		w.child.signal(s)
		w.child.signal(unix.SIGCONT) // it may be stopped, and would never hear of it
	default:
		w.child.signal(s)
	}
}

// stopped deals with a program that is stopped. If it wants the terminal, it gets it; otherwise a person who
// has a shell wants it back. Without a terminal, it is up to those who stopped the program.
func (w *watch) stopped(by syscall.Signal) {
	t := w.child.terminal
	switch {
	case t == nil, !t.input && !t.has(t.own) && !t.has(w.child.pid):
	case (by == unix.SIGTTIN || by == unix.SIGTTOU) && t.has(t.own):
		t.alone = true
		w.resume()
	default:
		w.suspend()
	}
}

// suspend stops this process too, while the program is stopped, so that a shell goes on. Nothing is renewed
// meanwhile. Then both go on; at once if nobody could continue them.
func (w *watch) suspend() {
	w.takeTerminal()
	stop()
	w.resume()
}

// resume lets a program that was stopped go on, unless its hold is over and the program may not outlast it.
func (w *watch) resume() {
	if w.left() <= 0 {
		w.end()
		if !w.rules.Leave {
			return
		}
	}
	c := w.child
	if t := c.terminal; t != nil && t.alone && t.has(t.own) {
		t.give(c.pid)
	}
	c.signal(unix.SIGCONT)
}

// pressed returns the signal that has ended the program if a key may have sent it: SIGINT or SIGQUIT, while the
// program had the terminal.
func (w *watch) pressed() syscall.Signal {
	c := w.child
	if c.terminal == nil || !c.terminal.has(c.pid) || !c.status.Signaled() {
		return 0
	}
	if s := c.status.Signal(); s == unix.SIGINT || s == unix.SIGQUIT {
		return s
	}
	return 0
}

// takeTerminal takes the terminal from the program, if it has it.
func (w *watch) takeTerminal() {
	if t := w.child.terminal; t != nil && t.has(w.child.pid) {
		t.give(t.own)
	}
}
