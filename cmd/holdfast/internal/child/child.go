// Package child runs a program in a process group of its own, for no longer than a lock is held.
//
// A Relay passes the signals of this process on. Under starts the program, and ends it before the hold does:
// by SIGTERM, and by SIGKILL when the grace is over.
package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Program is what is to run. Its streams are inherited as they are.
type Program struct {
	Args         []string // the first is looked up in PATH
	Env          []string
	In, Out, Err *os.File
}

// NotStarted says that the program could not be started.
type NotStarted struct{ Err error }

func (n *NotStarted) Error() string { return fmt.Sprintf("cannot run %v", n.Err) }
func (n *NotStarted) Unwrap() error { return n.Err }

// Code returns the exit code that shells and env(1) have for it: 127 if the program was not found, else 126.
func (n *NotStarted) Code() int {
	if errors.Is(n.Err, fs.ErrNotExist) || errors.Is(n.Err, exec.ErrNotFound) {
		return 127
	}
	return 126
}

// child is a running program, and the process group that it leads.
type child struct {
	pid      int
	terminal *terminal           // nil if it has none
	stops    chan syscall.Signal // what the program was stopped by
	done     chan struct{}       // closed when it has ended
	status   unix.WaitStatus
}

// start starts the program. If this process has a terminal in the foreground, the program gets it.
func start(p Program) (*child, error) {
	c := &child{terminal: controlling(p.In, p.Out), stops: make(chan syscall.Signal, 1), done: make(chan struct{})}
	cmd := exec.Command(p.Args[0], p.Args[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Env, p.In, p.Out, p.Err
	cmd.SysProcAttr = attributes(c.terminal)
	started := make(chan error)
	go func() {
		// The kernel ends the program when the thread that started it ends. This one is not given back, so
		// that it lives until the program has ended.
		runtime.LockOSThread()
		err := cmd.Start()
		if err == nil {
			c.pid = cmd.Process.Pid
			_ = cmd.Process.Release() // wait asks for itself
		}
		started <- err
		if err == nil {
			c.wait()
		}
	}()
	if err := <-started; err != nil {
		if cmd.SysProcAttr.Foreground { // the process that could not become the program has taken the terminal
			c.terminal.give(c.terminal.own)
		}
		c.terminal.close()
		return nil, &NotStarted{err}
	}
	return c, nil
}

// wait reports each stop of the program, until the program has ended.
func (c *child) wait() {
	defer close(c.done)
	for {
		_, err := unix.Wait4(c.pid, &c.status, unix.WUNTRACED, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // this process did not reap it: what is not known must not pass for success
			c.status = 1 << 8
			return
		case !c.status.Stopped():
			return
		default:
			select {
			case c.stops <- c.status.StopSignal():
			default: // it was stopped before, and that is not dealt with yet
			}
		}
	}
}

// signal sends a signal to the whole process group. It reports whether anything is left of it.
func (c *child) signal(s syscall.Signal) bool { return !errors.Is(unix.Kill(-c.pid, s), unix.ESRCH) }

// code returns the exit code of the program, which has ended: 128+n if signal n ended it.
func (c *child) code() int {
	if c.status.Signaled() {
		return 128 + int(c.status.Signal())
	}
	return c.status.ExitStatus()
}
