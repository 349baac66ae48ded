//go:build unix && !linux

package child

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes makes the program lead a process group, in the foreground of the terminal if there is one. Only
// Linux can end it if this process is killed.
func attributes(t *terminal) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if t != nil && t.alone && t.has(t.own) {
		a.Foreground, a.Ctty = true, t.fd
	}
	return a
}

// stop stops this process, until it is continued.
func stop() { _ = unix.Kill(unix.Getpid(), unix.SIGSTOP) }

// ignore has this process ignore a signal until restore is called. The programs that it starts later may ignore it too.
func ignore(s syscall.Signal) (restore func()) {
	signal.Ignore(s)
	return func() { signal.Reset(s) }
}
