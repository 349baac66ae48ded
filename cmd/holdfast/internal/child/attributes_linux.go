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
	var byDefault sigaction
	before := act(unix.SIGTSTP, byDefault)
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGTSTP)
	act(unix.SIGTSTP, before)
}

// sigaction is the kernel's struct of that name. It begins with the handler: 0 is SIG_DFL, and 1 is SIG_IGN.
type sigaction [8]uintptr

// act sets what the kernel does by a signal, and returns what it did before.
func act(s syscall.Signal, to sigaction) (before sigaction) {
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s),
		uintptr(unsafe.Pointer(&to)), uintptr(unsafe.Pointer(&before)), 8, 0, 0)
	return before
}

// ignore has this process ignore a signal until restore is called. signal.Reset would leave it ignored, in the programs
// that this process starts too.
func ignore(s syscall.Signal) (restore func()) {
	before := act(s, sigaction{1})
	return func() { act(s, before) }
}
