//go:build unix

// Stopping and continuing a process, where there are signals for it.

package redistest

import (
	"os"
	"syscall"
)

func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func thaw(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
