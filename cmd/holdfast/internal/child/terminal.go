// The terminal: which process group has it in the foreground.

package child

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is the terminal that controls this process.
type terminal struct {
	file  *os.File
	fd    int
	own   int  // the process group of this process
	input bool // the input comes from it
	alone bool // nobody else in that process group needs the terminal
}

// controlling returns the terminal that controls this process, or nil if none does. A program may ask there for a
// password though its input comes from elsewhere. If its input or its output is elsewhere, such as at a pager, then
// another may need the terminal too, in the process group of this process.
func controlling(in, out *os.File) *terminal {
	file, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	t := &terminal{file: file, fd: int(file.Fd()), own: unix.Getpgrp(), input: isTerminal(in)}
	t.alone = t.input && isTerminal(out)
	return t
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil
}

// close gives the terminal up. There may be none.
func (t *terminal) close() {
	if t != nil {
		_ = t.file.Close()
	}
}

// has reports whether the process group is in the foreground.
func (t *terminal) has(group int) bool {
	now, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && now == group
}

// give puts a process group in the foreground. A process in the background gets SIGTTOU for that, which
// stops it unless it ignores it.
func (t *terminal) give(group int) {
	defer ignore(syscall.SIGTTOU)()
	_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group) // the terminal may be gone
}

// Resend sends the signal of a key to the process group of this process, as the terminal does to all whom it reaches: a
// script that waits for this process ends by Ctrl-C, as it would have without this process in between. SIGINT ends this
// process too. By SIGQUIT a program of Go would print its goroutines, so this process only returns.
func Resend(key syscall.Signal) {
	if key == syscall.SIGQUIT {
		signal.Ignore(key)
	} else {
		signal.Reset(key)
	}
	_ = unix.Kill(0, key)
	if key == syscall.SIGINT && !signal.Ignored(key) {
		time.Sleep(time.Second) // another thread may be the one that takes the signal
	}
}
