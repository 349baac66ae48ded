// Package interop runs Redisson beside Holdfast. It starts a Java process, and makes it use
// Redisson's locks. It tests that Go and Java exclude and wake each other. The Java side is in
// java/.
//
// It needs Java 17, Maven and a Unix.
package interop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrGone says that the Java process has ended.
var ErrGone = errors.New("the Java process is gone")

// Java is a Java process that does with Redisson what Go tells it to do. Any goroutine may call its
// methods.
type Java struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	gone   chan struct{} // closed when the process has ended and all its answers are read
	broken error         // why the process has ended; read it only after gone is closed

	mu    sync.Mutex
	last  int
	calls map[int]*Call // the calls without an answer yet
}

// arguments returns the arguments of java that run the program on that class path, with options of
// the JVM.
func arguments(classPath string, options []string, args ...string) []string {
	return slices.Concat(options, []string{"-cp", classPath, "holdfast.interop.Main"}, args)
}

// Start starts a process with that version of Redisson. The process writes the complaints of its
// libraries to stderr. It ends when it is killed or closed, or together with this process.
func Start(ctx context.Context, version string, stderr io.Writer) (*Java, error) {
	classPath, err := Build(ctx, version)
	if err != nil {
		return nil, err
	}
	// The process lives for seconds, so a fast start matters more than fast code.
	cmd := exec.Command("java", arguments(classPath,
		[]string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m"})...)
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	j := &Java{cmd: cmd, stdin: stdin, gone: make(chan struct{}), calls: make(map[int]*Call)}
	answers := bufio.NewReader(stdout)
	patience := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	greeting, err := answers.ReadString('\n')
	patience()
	if want := "ready " + version; err != nil || strings.TrimSpace(greeting) != want {
		cmd.Process.Kill()
		return nil, fmt.Errorf("interop: Java says %q, not %q: %w", greeting, want, errors.Join(err, cmd.Wait()))
	}
	go j.read(answers)
	return j, nil
}

// read hands answers to their calls until there are no more answers.
func (j *Java) read(answers *bufio.Reader) {
	for {
		line, err := answers.ReadString('\n')
		if err != nil {
			break
		}
		if err := j.answer(strings.TrimSuffix(line, "\n")); err != nil {
			j.cmd.Process.Kill()
			j.broken = err
		}
	}
	j.broken = errors.Join(ErrGone, j.broken, j.cmd.Wait())
	close(j.gone)
}

// answer ends the call to which the line is the answer.
func (j *Java) answer(line string) error {
	words := strings.SplitN(line, " ", 4)
	if len(words) < 3 {
		return fmt.Errorf("interop: Java says %q", line)
	}
	number, err1 := strconv.Atoi(words[0])
	micros, err2 := strconv.ParseInt(words[1], 10, 64)
	j.mu.Lock()
	call := j.calls[number]
	delete(j.calls, number)
	j.mu.Unlock()
	if err := errors.Join(err1, err2); err != nil || call == nil {
		return fmt.Errorf("interop: Java says %q: %w", line, err)
	}
	call.at = time.UnixMicro(micros)
	rest := strings.Join(words[3:], "")
	if words[2] == "ok" {
		call.value = rest
	} else {
		class, message, _ := strings.Cut(rest, " ")
		call.err = &Exception{Class: class, Message: message}
	}
	close(call.done)
	return nil
}

// PID returns the process's id.
func (j *Java) PID() int { return j.cmd.Process.Pid }

// Kill ends the process with SIGKILL, even if it is frozen, and returns when the process is gone.
func (j *Java) Kill() {
	j.cmd.Process.Kill()
	<-j.gone
}

// Freeze stops the process with SIGSTOP.
func (j *Java) Freeze() error { return j.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw lets a frozen process go on.
func (j *Java) Thaw() error { return j.cmd.Process.Signal(syscall.SIGCONT) }

// Connect makes a Redisson client of that name. The process may have several clients. The words are
// the words of java/.../Connection.java: "single" or "cluster", the addresses, and options
// ("watchdog=2000").
func (j *Java) Connect(ctx context.Context, name string, words ...string) (*Redisson, error) {
	r := &Redisson{java: j, name: name}
	_, err := r.Thread("main").Do(ctx, "connect", strings.Join(words, " "))
	return r, err
}

// Redisson is one client of a Java process. It has connections, subscriptions and an id of its own,
// as if it were a separate process.
type Redisson struct {
	java *Java
	name string
}

// Close shuts the client down. Whatever it holds runs out.
func (r *Redisson) Close(ctx context.Context) error {
	_, err := r.Thread("main").Do(ctx, "close")
	return err
}

// Thread returns the thread of that name, and makes it at its first use. In Redisson the owner of a
// lock is a thread.
func (r *Redisson) Thread(name string) Thread {
	return Thread{client: r, name: r.name + "." + name}
}

// Thread is a thread of a Java process: it does one thing after the other.
type Thread struct {
	client *Redisson
	name   string
}

// Go tells the thread to do something after everything that it was asked before. The words are the
// words of java/.../Commands.java.
func (t Thread) Go(command string, args ...any) *Call {
	j := t.client.java
	call := &Call{java: j, done: make(chan struct{})}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	j.calls[j.last] = call
	line := fmt.Sprintln(append([]any{j.last, t.name, t.client.name, command}, args...)...)
	// A process that is gone does not read. Wait reports that.
	_, _ = io.WriteString(j.stdin, line)
	return call
}

// Do calls Go, and then Wait.
func (t Thread) Do(ctx context.Context, command string, args ...any) (string, error) {
	value, err := t.Go(command, args...).Wait(ctx)
	if err != nil {
		err = fmt.Errorf("%s %v: %w", command, args, err)
	}
	return value, err
}

// Call is an order that a thread was given.
type Call struct {
	java  *Java
	done  chan struct{}
	value string
	at    time.Time
	err   error
}

// Wait waits for the answer to the call, and returns it. The answer is a value, which may be empty,
// or an error. The error is an *Exception if Java threw an exception.
func (c *Call) Wait(ctx context.Context) (string, error) {
	select {
	case <-c.done:
		return c.value, c.err
	case <-c.java.gone:
		return "", c.java.broken
	case <-ctx.Done():
		return "", fmt.Errorf("java does not answer: %w", ctx.Err())
	}
}

// Done is closed when Java has answered.
func (c *Call) Done() <-chan struct{} { return c.done }

// At returns when Java answered, by Java's clock. It is meaningful when Done is closed.
func (c *Call) At() time.Time { return c.at }

// Exception is an exception that Java threw.
type Exception struct {
	Class   string
	Message string
}

func (e *Exception) Error() string { return e.Class + ": " + e.Message }
