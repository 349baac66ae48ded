//go:build !linux

// On systems other than Linux, children outlive a killed test binary, and a stop counts as done once
// the signal is sent. The go command's standard error is out of reach, and no thread is kept on a
// processor.

package redistest

import (
	"os"
	"syscall"
	"time"
)

func childAttr() *syscall.SysProcAttr { return nil }

func stopped(int) error { return nil }

func goCommandStderr() *os.File { return nil }

func processors() []int { return nil }

func onProcessor(int, func()) {}

func sleepThread(d time.Duration) { time.Sleep(d) }
