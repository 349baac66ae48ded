// A child is a part of the test binary that runs as a process of its own. A test can kill it and
// stop it. The holders and waiters of process tests are children.

package redistest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// envChild tells the test binary which child it is to run as.
const envChild = "HOLDFAST_TEST_CHILD"

// ChildFunc is a function that can run as a process, given to [Main].
type ChildFunc struct {
	name string
	run  func(*ChildContext)
}

// Child names a function for [Main] to run when [Start] asks for it. The
// process ends with status 0 when run returns.
func Child(name string, run func(*ChildContext)) ChildFunc { return ChildFunc{name: name, run: run} }

// ChildContext connects a child with its parent: each can send the other lines. Its context
// ends when the parent closes the child's input or is gone.
type ChildContext struct {
	context.Context
	lines chan string
}

func runChild(name string, children []ChildFunc) int {
	for _, c := range children {
		if c.name == name {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			lines := newLines()
			go func() { // it ends with the process
				readLines(os.Stdin, lines)
				cancel()
			}()
			c.run(&ChildContext{Context: ctx, lines: lines})
			return 0
		}
	}
	fmt.Fprintf(os.Stderr, "redistest: no child is called %q in this package's TestMain\n", name)
	return 2
}

// newLines returns a channel for lines that the reader has not asked for yet: the child notices the
// end of its input at once, and does not wait for its parent when it says something.
func newLines() chan string { return make(chan string, 1<<18) }

// readLines reads lines until there are no more.
func readLines(from io.Reader, lines chan<- string) {
	for in := bufio.NewScanner(from); in.Scan(); {
		lines <- in.Text()
	}
	close(lines)
}

// Say sends the parent one line.
func (c *ChildContext) Say(format string, args ...any) { fmt.Fprintf(os.Stdout, format+"\n", args...) }

// Next waits for a line from the parent; ok is false when no more will come.
func (c *ChildContext) Next() (line string, ok bool) {
	line, ok = <-c.lines
	return line, ok
}

// ChildProc is a running child, seen from its parent.
type ChildProc struct {
	t     testing.TB
	name  string
	proc  *process
	stdin io.WriteCloser
	lines chan string
	wg    sync.WaitGroup // reads the child's output
}

// Start runs the child called name in a new process, with env added to the environment. The
// process is killed when t ends, or when the test binary does. Its standard error appears in
// t's log.
func Start(t testing.TB, name string, env map[string]string) *ChildProc {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), envChild+"="+name)
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	c := &ChildProc{t: t, name: name, lines: newLines()}
	logPath := filepath.Join(t.TempDir(), name+".log")
	if err := c.start(cmd, logPath); err != nil {
		t.Fatalf("redistest: start child %s: %v", name, err)
	}
	t.Cleanup(func() {
		c.Kill()
		if log, err := os.ReadFile(logPath); err == nil && len(log) > 0 {
			t.Logf("child %s wrote to its standard error:\n%s", name, log)
		}
	})
	return c
}

// start makes its own pipes: Wait closes the pipes of exec.Cmd while there may still be lines to
// read.
func (c *ChildProc) start(cmd *exec.Cmd, logPath string) error {
	log, err := os.Create(logPath)
	if err != nil {
		return err
	}
	defer log.Close()
	childIn, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer childIn.Close()
	out, childOut, err := os.Pipe()
	if err != nil {
		in.Close()
		return err
	}
	defer childOut.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = childIn, childOut, log
	if c.proc, err = startProcess(cmd); err != nil {
		in.Close()
		out.Close()
		return err
	}
	c.stdin = in
	c.wg.Go(func() {
		defer out.Close()
		readLines(out, c.lines)
	})
	return nil
}

// PID returns the child's process id.
func (c *ChildProc) PID() int { return c.proc.pid() }

// Send gives the child one line. It fails the test if the child is gone.
func (c *ChildProc) Send(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.stdin, format+"\n", args...); err != nil {
		c.t.Fatalf("redistest: child %s does not read: %v", c.name, err)
	}
}

// Line returns the child's next line. It fails the test after a minute, or when the child is
// gone and all of its lines have been read.
func (c *ChildProc) Line() string {
	c.t.Helper()
	select {
	case line, ok := <-c.lines:
		if !ok {
			c.t.Fatalf("redistest: child %s has ended", c.name)
		}
		return line
	case <-time.After(patience):
		c.t.Fatalf("redistest: child %s says nothing for %v", c.name, patience)
	}
	return ""
}

// Expect reads lines until one begins with prefix and returns the rest of it.
func (c *ChildProc) Expect(prefix string) string {
	c.t.Helper()
	for {
		if rest, ok := strings.CutPrefix(c.Line(), prefix); ok {
			return strings.TrimSpace(rest)
		}
	}
}

// TryLine returns the child's next line, if one comes within that time.
func (c *ChildProc) TryLine(within time.Duration) (line string, ok bool) {
	select {
	case line, ok = <-c.lines:
		return line, ok
	default: // only then does the time count, which may be none
	}
	select {
	case line, ok = <-c.lines:
	case <-time.After(within):
	}
	return line, ok
}

// Kill ends the child with SIGKILL, even a frozen one, and returns when it is gone.
func (c *ChildProc) Kill() {
	if err := c.proc.kill(); err != nil {
		c.t.Errorf("redistest: kill child %s: %v", c.name, err)
	}
	c.stdin.Close()
	c.wg.Wait()
}

// Freeze stops the child with SIGSTOP and returns when it has stopped.
func (c *ChildProc) Freeze() {
	if err := c.proc.freeze(); err != nil {
		c.t.Errorf("redistest: freeze child %s: %v", c.name, err)
	}
}

// Thaw lets a frozen child go on.
func (c *ChildProc) Thaw() {
	if err := c.proc.thaw(); err != nil {
		c.t.Errorf("redistest: thaw child %s: %v", c.name, err)
	}
}

// Wait returns when the child has ended of its own accord, with nil if its status was 0. It fails the
// test after a minute.
func (c *ChildProc) Wait() error {
	c.t.Helper()
	select {
	case <-c.proc.exited:
	case <-time.After(patience):
		c.t.Fatalf("redistest: child %s still runs after %v", c.name, patience)
	}
	c.wg.Wait()
	return c.proc.err
}
