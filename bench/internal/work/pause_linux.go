// A pause that is as long as it says, beside others.

package work

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// pause waits for that long; it is for one goroutine. It is in place of time.Sleep,
// which in a process that is idle otherwise waits in whole milliseconds: where others
// sleep too, 1 ms lasts up to 1.4 ms, and alone 1.1: not the same work. The timer is
// closed when it is collected.
type pause struct{ timer *os.File }

func newPause() (pause, error) {
	const monotonic = 1
	fd, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, monotonic, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return pause{}, os.NewSyscallError("timerfd_create", errno)
	}
	return pause{os.NewFile(fd, "timerfd")}, nil
}

func (p pause) wait(d time.Duration) error {
	conn, err := p.timer.SyscallConn()
	if err != nil {
		return err
	}
	once := struct{ every, first syscall.Timespec }{first: syscall.NsecToTimespec(int64(d))}
	var errno syscall.Errno
	if err := conn.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&once)), 0, 0, 0)
	}); err != nil {
		return err
	}
	if errno != 0 {
		return os.NewSyscallError("timerfd_settime", errno)
	}
	var rung [8]byte
	_, err = p.timer.Read(rung[:])
	return err
}
