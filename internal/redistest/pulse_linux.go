// Linux: a thread that stays on one processor.

package redistest

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// affinity is a set of processors, as the kernel takes it.
type affinity [16]uint64

// processors returns those that this process may run on.
func processors() []int {
	var set affinity
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0,
		unsafe.Sizeof(set), uintptr(unsafe.Pointer(&set))); errno != 0 {
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

// onProcessor calls f on a thread that stays on that processor, and that ends with the
// goroutine: it is not unlocked, so that nothing else ever runs on it.
func onProcessor(cpu int, f func()) {
	runtime.LockOSThread()
	var set affinity
	set[cpu/64] = 1 << (cpu % 64)
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0,
		unsafe.Sizeof(set), uintptr(unsafe.Pointer(&set))); errno != 0 {
		return
	}
	f()
}

// sleepThread has the thread itself sleep, not only its goroutine.
func sleepThread(d time.Duration) {
	left := syscall.NsecToTimespec(int64(d))
	for syscall.Nanosleep(&left, &left) == syscall.EINTR { // the runtime's own signals
	}
}
