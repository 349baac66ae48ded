// The terminal: which process group has it in the foreground.

package child

import (
	"os"
	"os/signal"
	"syscall"

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
// password though its input comes from elsewhere. If its input or its output does, as to a pager, then another may
// need the terminal too, in the process group of this process.
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
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group) // the terminal may be gone
}
