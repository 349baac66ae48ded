package child

import (
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attributes makes the program lead a process group, in the foreground of the terminal if there is one, and
// end by SIGKILL if this process is killed.
func attributes(t *terminal) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if t != nil && t.alone && t.has(t.own) {
		a.Foreground, a.Ctty = true, t.fd
	}
	return a
}

var stopping sync.Mutex

// stop stops this process as Ctrl-Z does, until it is continued. The kernel drops that signal, and stop returns, where
// nobody could continue the process: the first one of a container, or of a terminal without a shell. SIGSTOP would be
// obeyed there. The signal goes to this thread, so that the process stops before stop returns, and by the kernel's own
// default, which os/signal does not restore.
func stop() {
	stopping.Lock() // another stop would take the default for what there was before
	defer stopping.Unlock()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var byDefault, before [64]byte // a struct sigaction; all zeros is SIG_DFL
	act := func(to, was *[64]byte) {
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGTSTP),
			uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(was)), 8, 0, 0)
	}
	act(&byDefault, &before)
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGTSTP)
	act(&before, nil)
}
