// This file measures what this process has used.

package measure

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
)

// Usage is what a process has used since it began, or between two moments.
type Usage struct {
	CPU    time.Duration // user and system
	Allocs uint64
	Bytes  uint64 // allocated
}

// Used returns what this process has used until now. It stops the world for a moment.
func Used() Usage {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return Usage{CPU: CPU(), Allocs: memory.Mallocs, Bytes: memory.TotalAlloc}
}

// Since returns what the process used after then.
func (u Usage) Since(then Usage) Usage {
	return Usage{CPU: u.CPU - then.CPU, Allocs: u.Allocs - then.Allocs, Bytes: u.Bytes - then.Bytes}
}

// HeapInUse returns the bytes that are alive on the heap after a collection.
func HeapInUse() uint64 {
	runtime.GC()
	runtime.GC() // the first collection may only have finished an earlier one
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return memory.HeapAlloc
}

// CPU returns the CPU time of this process, user and system.
func CPU() time.Duration {
	var usage syscall.Rusage
	// Getrusage fails only for a bad argument.
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// RSS returns the bytes of memory that this process has, 0 where that is not known.
func RSS() int64 {
	var size, resident int64
	text, _ := os.ReadFile("/proc/self/statm") // only Linux has it
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}
