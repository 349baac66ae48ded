// On Linux, child processes die with the test binary, and freeze waits until the process has
// stopped.

package redistest

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// childAttr makes the kernel kill the child when its parent is gone, however the parent ended. The
// kernel watches the thread that started the child. The Go runtime keeps threads unless a goroutine
// exits while it is locked to one, so a test that calls runtime.LockOSThread must unlock before it
// returns.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// stopped returns nil once every thread of pid is stopped: the signal is delivered asynchronously,
// and a thread of a server may still answer meanwhile.
func stopped(pid int) error {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	for _, task := range tasks {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/stat", pid, task.Name()))
		if err != nil {
			return err
		}
		// The state follows the command name, which may itself hold brackets.
		state := stat[bytes.LastIndexByte(stat, ')')+2]
		if state != 'T' && state != 't' {
			return fmt.Errorf("thread %s of process %d is in state %c", task.Name(), pid, state)
		}
	}
	return nil
}
