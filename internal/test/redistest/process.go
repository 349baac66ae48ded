// A test owns operating system processes: it starts, freezes and kills them.

package redistest

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"time"
)

// process is a running child. Its waiter goroutine ends with the child, and
// kill waits for both.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed once the child is reaped
	err    error         // from Wait; read only after exited is closed

	mu     sync.Mutex
	frozen bool
}

// startProcess starts cmd as a child that does not outlive the test binary.
func startProcess(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = childAttr()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// running reports whether the process can answer: it is neither gone nor frozen.
func (p *process) running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.frozen && p.alive()
}

// kill ends the process at once, even a frozen one, and returns when it is reaped.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.exited
	return nil
}

// freeze returns when the process has stopped executing.
func (p *process) freeze() error {
	p.setFrozen(true)
	if err := freeze(p.cmd.Process); err != nil {
		return err
	}
	return poll(10*time.Second, func() error { return stopped(p.pid()) })
}

func (p *process) thaw() error {
	p.setFrozen(false)
	return thaw(p.cmd.Process)
}

func (p *process) setFrozen(frozen bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = frozen
}
