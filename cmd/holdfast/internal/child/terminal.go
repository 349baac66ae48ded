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
	fd    int
	own   int  // the process group of this process
	alone bool // nobody else in that process group needs the terminal
}

// terminalOf returns the terminal that the input comes from, or nil if it comes from none. If the output
// goes elsewhere, as to a pager, then that may need the terminal too, in the process group of this process.
func terminalOf(in, out *os.File) *terminal {
	t := &terminal{fd: int(in.Fd()), own: unix.Getpgrp()}
	if _, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP); err != nil {
		return nil
	}
	_, err := unix.IoctlGetInt(int(out.Fd()), unix.TIOCGPGRP)
	t.alone = err == nil
	return t
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
