// A pause lasts as long as it says, even when other goroutines sleep too.

package work

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// pause waits for a given time. One goroutine uses it. It takes the place of time.Sleep, which in
// an otherwise idle process waits in whole milliseconds. There 1 ms lasts up to 1.4 ms where other
// goroutines sleep too, and 1.1 ms alone: that is not the same work. The garbage collector closes
// the timer.
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
