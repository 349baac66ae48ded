// These tests run the holdfast command as its users do: the binary, real programs below it, and a real Redis.

package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// binary is the command, built for these tests.
var binary string

// roleVar says which part the test's own binary plays, as a program below the command.
const roleVar = "HOLDFAST_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		play(role)
		return
	}
	redistest.Together(6) // most tests wait for processes, outages and expiries
	redistest.Main(built{m})
}

// built are the tests, for which the command is built first.
type built struct{ *testing.M }

func (b built) Run() int {
	// What these tests were started to ignore, as by nohup or in the background, the command would ignore too.
	// What a process takes, its children begin with as usual.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
	dir, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "holdfast")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if redistest.RaceDetector {
		build = exec.Command("go", "build", "-race", "-o", binary, ".")
	}
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s\n", out)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return b.M.Run()
}

// The parts that the test's binary plays below the command. Each prints "ready" first.
func play(role string) {
	switch role {
	case "tree": // starts another, and prints each signal that one of the two gets
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), roleVar+"=leaf")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			panic(err)
		}
		hear("root")
	case "leaf":
		hear("leaf")
	case "stubborn": // takes no notice of SIGTERM, and writes the time each millisecond
		signal.Ignore(syscall.SIGTERM)
		beat(os.Args[1])
	case "beat":
		beat(os.Args[1])
	}
}

// hear prints each signal that comes, until one that ends it.
func hear(who string) {
	c := make(chan os.Signal, 16)
	signal.Notify(c)
	fmt.Println(who, "ready")
	for s := range c {
		switch s {
		case syscall.SIGURG, syscall.SIGCHLD, syscall.SIGCONT, syscall.SIGWINCH:
		case syscall.SIGTERM:
			fmt.Println(who, s)
			os.Exit(0)
		default:
			fmt.Println(who, s)
		}
	}
}

// beat writes the time to a file, again and again: one line of its beginning and its last beat.
func beat(file string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	for n := 0; ; n++ {
		fmt.Fprintf(f, "%d %d\n", os.Getpid(), time.Now().UnixNano())
		if n == 0 {
			fmt.Println("ready")
		}
		time.Sleep(time.Millisecond)
	}
}

// beats returns the times that a program wrote, by its process id, in the order of their beginnings.
func beats(t *testing.T, file string) (all [][]time.Time) {
	t.Helper()
	text, err := os.ReadFile(file)
	redistest.Must(t, err)
	place := make(map[int]int) // of each process in all
	for line := range strings.Lines(string(text)) {
		var pid int
		var at int64
		if _, err := fmt.Sscan(line, &pid, &at); err != nil {
			continue // the last line may be half of one: the program was killed
		}
		n, begun := place[pid]
		if !begun {
			n, all = len(all), append(all, nil)
			place[pid] = n
		}
		all[n] = append(all[n], time.Unix(0, at))
	}
	return all
}

// server starts a Redis, and returns its URL. The test runs beside others: it mostly waits.
func server(t *testing.T, args ...string) (*redistest.Proc, string) {
	t.Helper()
	redistest.Parallel(t)
	return serverAlone(t, args...)
}

// serverAlone is server for a test beside which no other runs: it compares the times of processes.
func serverAlone(t *testing.T, args ...string) (*redistest.Proc, string) {
	t.Helper()
	s := redistest.Server(t, args...)
	return s, "redis://" + s.Addr()
}

// command is one run of the command.
type command struct {
	t *testing.T
	*exec.Cmd
	in       io.WriteCloser
	lines    chan string // of standard output
	ended    chan struct{}
	err      error
	mu       sync.Mutex // guards what follows
	messages bytes.Buffer
}

// start starts the command, in a process group of its own, as a shell does. A role makes the test's own binary that
// program.
func start(t *testing.T, url, role string, args ...string) *command {
	t.Helper()
	return startIn(t, &syscall.SysProcAttr{Setpgid: true}, url, role, args...)
}

func startIn(t *testing.T, group *syscall.SysProcAttr, url, role string, args ...string) *command {
	t.Helper()
	c := &command{t: t, Cmd: exec.Command(binary, args...), lines: make(chan string, 10_000), ended: make(chan struct{})}
	c.Env = append(os.Environ(), "HOLDFAST_URL="+url, roleVar+"="+role)
	c.Stderr, c.SysProcAttr = c, group
	out, err := c.StdoutPipe()
	redistest.Must(t, err)
	if c.in, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	redistest.Must(t, c.Start())
	go func() {
		defer close(c.ended)
		for s := bufio.NewScanner(out); s.Scan(); {
			c.lines <- s.Text()
		}
		close(c.lines)
		c.err = c.Wait()
	}()
	t.Cleanup(func() {
		select {
		case <-c.ended: // its process id may be another's by now
		default:
			killTree(t, c.Process.Pid) // a program that is left would keep the output open
		}
		<-c.ended
	})
	return c
}

// killTree kills a process, and what it has started.
func killTree(t *testing.T, pid int) {
	all := below(t, pid)
	_ = syscall.Kill(pid, syscall.SIGKILL)
	for _, child := range all {
		killTree(t, child)
	}
}

// Write takes in what the command says to people.
func (c *command) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.messages.Write(b)
}

func (c *command) said() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.messages.String()
}

// line waits for a line of output, and returns it.
func (c *command) line() string {
	c.t.Helper()
	select {
	case l, ok := <-c.lines:
		if !ok {
			c.t.Fatalf("it has ended: %s", c.said())
		}
		return l
	case <-time.After(20 * time.Second):
		c.t.Fatalf("no output: %s", c.said())
	}
	return ""
}

// await waits for these lines of output, in any order.
func (c *command) await(want ...string) {
	c.t.Helper()
	for len(want) > 0 {
		l := c.line()
		if i := slices.Index(want, l); i >= 0 {
			want = slices.Delete(want, i, i+1)
		}
	}
}

// code waits until the command has ended, and returns its exit code, and its output that nobody has read.
func (c *command) code() (code int, rest []string) {
	c.t.Helper()
	select {
	case <-c.ended:
	case <-time.After(30 * time.Second):
		c.t.Fatalf("it does not end: %s", c.said())
	}
	for l := range c.lines {
		rest = append(rest, l)
	}
	if c.err != nil && !errors.As(c.err, new(*exec.ExitError)) {
		c.t.Fatal(c.err)
	}
	if ws := c.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		return -int(ws.Signal()), rest
	}
	return c.ProcessState.ExitCode(), rest
}

// want waits until the command has ended with that code.
func (c *command) want(code int) (rest []string) {
	c.t.Helper()
	got, rest := c.code()
	if got != code {
		c.t.Errorf("%q: exit code %d, want %d: %s", c.Args[1:], got, code, c.said())
	}
	return rest
}

func (c *command) send(s syscall.Signal) {
	c.t.Helper()
	redistest.Must(c.t, c.Process.Signal(s))
}

// end ends the command and its program, which SIGTERM ends too.
func (c *command) end() {
	c.t.Helper()
	c.send(syscall.SIGTERM)
	c.want(143)
}

// below returns the process ids of the command's children.
func (c *command) below() (pids []int) { return below(c.t, c.Process.Pid) }

func below(t *testing.T, parent int) (pids []int) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	redistest.Must(t, err)
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		for _, field := range strings.Fields(string(text)) {
			pid, _ := strconv.Atoi(field)
			pids = append(pids, pid)
		}
	}
	return pids
}

// state returns the state of a process as /proc has it: "R", "S", "T" for stopped, and so on; "" if it is gone.
func state(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	return fields[0]
}

// inState waits until a process is in one of these states.
func inState(t *testing.T, pid int, states ...string) {
	t.Helper()
	redistest.Eventually(t, 20*time.Second, fmt.Sprintf("process %d in state %q", pid, states), func() error {
		if s := state(pid); !slices.Contains(states, s) {
			return fmt.Errorf("it is in %q", s)
		}
		return nil
	})
}

// gone are the states of a process that works no more.
var gone = []string{"", "Z", "X"}

func TestTheBinaryIsStatic(t *testing.T) {
	if redistest.RaceDetector {
		t.Skip("built with the race detector, which links C")
	}
	f, err := elf.Open(binary)
	redistest.Must(t, err)
	defer f.Close()
	if f.Section(".interp") != nil {
		t.Error("it needs a dynamic loader")
	}
}

// client returns a Client of the Redis at url.
func client(t *testing.T, url string) *holdfast.Client {
	t.Helper()
	options, err := redis.ParseURL(url)
	redistest.Must(t, err)
	rdb := redis.NewClient(options)
	t.Cleanup(func() { _ = rdb.Close() })
	return clienttest.OpenClient(t, rdb)
}
