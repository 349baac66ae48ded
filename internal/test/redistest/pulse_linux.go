// On Linux, a thread can stay on one processor.

package redistest

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// affinity is a set of processors, in the form that the kernel takes.
type affinity [16]uint64

// of makes the system call on the set: it reads or sets the processors that the calling thread may
// run on.
func (set *affinity) of(call uintptr) bool {
	_, _, errno := syscall.RawSyscall(call, 0, unsafe.Sizeof(*set), uintptr(unsafe.Pointer(set)))
	return errno == 0
}

// processors returns the processors that this process may run on.
func processors() []int {
	var set affinity
	if !set.of(syscall.SYS_SCHED_GETAFFINITY) {
		return nil
	}
	var all []int
	for cpu := range len(set) * 64 {
		if set[cpu/64]&(1<<(cpu%64)) != 0 {
			all = append(all, cpu)
		}
	}
	return all
}

// onProcessor calls f on a thread that stays on that processor until f returns. Afterwards the
// thread goes back to the runtime: if it ended, the servers that it has started would be killed
// (see childAttr).
func onProcessor(cpu int, f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, pinned affinity
	pinned[cpu/64] = 1 << (cpu % 64)
	if !before.of(syscall.SYS_SCHED_GETAFFINITY) || !pinned.of(syscall.SYS_SCHED_SETAFFINITY) {
		return
	}
	f()
	before.of(syscall.SYS_SCHED_SETAFFINITY)
}

// sleepThread makes the thread itself sleep, not only its goroutine.
func sleepThread(d time.Duration) {
	left := syscall.NsecToTimespec(int64(d))
	for syscall.Nanosleep(&left, &left) == syscall.EINTR { // the runtime's own signals
	}
}
