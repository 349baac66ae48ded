//go:build !linux

// On systems other than Linux, children outlive a killed test binary, and a stop counts as done
// once the signal is sent.

package redistest

import "syscall"

func childAttr() *syscall.SysProcAttr { return nil }

func stopped(int) error { return nil }
