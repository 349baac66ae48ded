// The relay: what becomes of the signals that this process gets.

package child

import (
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
)

// ours are the signals that are not passed on: those that say something of this process alone.
var ours = []os.Signal{
	syscall.SIGCHLD, syscall.SIGURG, syscall.SIGPIPE, syscall.SIGPROF, syscall.SIGTTIN, syscall.SIGTTOU,
	syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGSEGV,
	syscall.SIGSYS, syscall.SIGKILL, syscall.SIGSTOP,
}

// Relay passes the signals that this process gets on to the program that runs under it. While none runs, a signal that
// asks a process to end ends what waits to start it, and Ctrl-Z stops this process.
type Relay struct {
	got  chan os.Signal
	quit chan struct{}
	done sync.WaitGroup

	mu    sync.Mutex // guards what follows
	to    chan<- syscall.Signal
	asked syscall.Signal
	end   func()
}

// NewRelay returns a Relay at work. It calls end, once, when this process is asked to end while no program
// runs. What this process was started to ignore, for example by nohup, stays ignored. Stop must
// follow.
func NewRelay(end func()) *Relay {
	r := &Relay{got: make(chan os.Signal, 64), quit: make(chan struct{}), end: sync.OnceFunc(end)}
	signal.Notify(r.got, passedOn()...)
	r.done.Go(r.work)
	return r
}

// passedOn returns the signals that a Relay takes.
func passedOn() (all []os.Signal) {
	for n := syscall.Signal(1); n < 32; n++ {
		if !slices.Contains(ours, os.Signal(n)) && !signal.Ignored(n) {
			all = append(all, n)
		}
	}
	return all
}

// Stop gives the signals back to their default.
func (r *Relay) Stop() {
	signal.Stop(r.got)
	close(r.quit)
	r.done.Wait()
}

// Asked returns the signal by which this process was asked to end, or 0.
func (r *Relay) Asked() syscall.Signal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

func (r *Relay) work() {
	for {
		select {
		case s := <-r.got:
			if s := s.(syscall.Signal); !r.pass(s) {
				r.obey(s)
			}
		case <-r.quit:
			return
		}
	}
}

// asks reports whether a signal asks a process to end. A program that runs hears of SIGHUP, and may go on.
func (r *Relay) asks(s syscall.Signal) bool {
	switch s {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT:
		return true
	case syscall.SIGHUP:
		return r.to == nil
	}
	return false
}

// pass passes a signal on to the program that runs. It returns false if none does.
func (r *Relay) pass(s syscall.Signal) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asks(s) && r.asked == 0 {
		r.asked = s
	}
	if r.to == nil {
		return false
	}
	select {
	case r.to <- s:
	default: // the program has some sixty signals to take already
	}
	return true
}

// obey does what a signal says, while no program runs.
func (r *Relay) obey(s syscall.Signal) {
	switch s {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP:
		r.end()
	case syscall.SIGTSTP:
		stop()
	}
}

// passTo makes the Relay pass signals to a program that runs, or to none. It reports whether this process was asked to
// end before.
func (r *Relay) passTo(to chan<- syscall.Signal) (asked bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = to
	return r.asked != 0
}
