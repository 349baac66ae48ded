// This file measures Redisson, for comparison.

package interop

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Bench says where and with which version Redisson is measured.
type Bench struct {
	Addr    string // host:port of the server, which has no password
	Version string // of Redisson; Newest if empty
}

// Settings says in words how the Java processes of a Bench are configured, where that is not
// Redisson's default.
const Settings = "one JVM for all rounds (two for the hand-off), java -Xmx2g; " +
	"connectionPoolSize as many as the client's threads, 16 to 256 (default 64); " +
	"subscriptionConnectionPoolSize a fifth of the threads, at least 50 (the default); " +
	"connectionMinimumIdleSize 4 (default 24)"

// Load is what Redisson does while it is measured.
type Load struct {
	processes int
	words     func(i int, dir string) []any // the words of java/.../Bench.java for each process
}

// Result is what was measured. Measurements of throughput set Done, PerSecond, Fairness and
// Starved. Measurements of latency set the times.
type Result struct {
	Redisson string // the version of Redisson, as it reports it

	Done      int64   // turns in the time that counts
	PerSecond float64 // Done per second
	Fairness  float64 // Jain's index over the threads: 1 if all had the same
	Starved   int     // threads that had no turn
	Failed    int64   // calls that threw an exception
	Stuck     int     // threads that still waited after the end, when none had ended for 5 s

	Samples       int
	P50, P99, Max time.Duration
}

func load(words ...any) Load {
	return Load{1, func(int, string) []any { return words }}
}

// Pairs makes that many threads of one client lock and unlock an RLock, each thread at a name of
// its own.
func Pairs(threads int) Load { return load("pairs", "lock", threads) }

// HandOff measures the time from just before the unlock of an RLock in one process to the grant in
// another process, which sleeps in lock(). The lock is held for 15 to 30 ms.
func HandOff() Load {
	return Load{2, func(i int, dir string) []any {
		role := "give"
		if i == 1 {
			role = "take"
		}
		return []any{"handoff", "lock", role, filepath.Join(dir, "meet")}
	}}
}

// The Loads with contention have several clients, which share no connection and no subscription,
// but a process: with few cores that is the better case for Java, because Java then compiles its
// code only once.

// Lock makes that many threads in all lock and unlock one RLock, in a loop.
func Lock(clients, threads int) Load { return load("contended", "lock", clients, threads) }

// FairLock makes that many threads in all lock and unlock one RFairLock, in a loop: at any time all
// threads but one wait.
func FairLock(clients, threads int) Load { return load("contended", "fair", clients, threads) }

// Semaphore makes that many threads in all acquire and release one permit of an RSemaphore, in a
// loop. The semaphore has that many permits.
func Semaphore(permits, clients, threads int) Load {
	return load("semaphore", permits, clients, threads)
}

// ReadWrite makes that many threads in all lock and unlock one RReadWriteLock, in a loop. Of a
// hundred times, reads times are on the read side, and the rest on the write side.
func ReadWrite(reads, clients, threads int) Load { return load("rw", reads, clients, threads) }

// Latch measures the time from the count-down that opens an RCountDownLatch until the last of the
// waiting threads is awake.
func Latch(clients, waiters int) Load { return load("latch", clients, waiters) }

// Limiter makes that many threads in all take permits of an RRateLimiter of rate a second, in a loop. They wait for
// each, or ask and do without.
func Limiter(rate, clients, threads int, wait bool) Load {
	waits := 0
	if wait {
		waits = 1
	}
	return load("limiter", rate, clients, threads, waits)
}

// Benching is a Load in Java processes that live until Close, so that they are measured when the
// Java virtual machine has compiled what it runs. Only one goroutine may use it.
type Benching struct {
	all  []*benchProcess
	dir  string
	stop context.CancelFunc
}

// Start starts the processes of a Load, which need Java 17 and Maven. The first call downloads and
// compiles for a minute or so. Without Java or Maven the error matches ErrNoJava. When ctx ends,
// the processes are killed.
func (b Bench) Start(ctx context.Context, l Load) (*Benching, error) {
	if b.Version == "" {
		b.Version = Newest
	}
	classPath, err := Build(ctx, b.Version)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &Benching{dir: dir, stop: cancel}
	for i := range l.processes {
		args := []string{"bench", b.Addr}
		for _, word := range l.words(i, dir) {
			args = append(args, fmt.Sprint(word))
		}
		p, err := startBenching(ctx, classPath, args)
		if err != nil {
			return nil, r.fail(err)
		}
		r.all = append(r.all, p)
	}
	for _, p := range r.all {
		if line := p.says(); line != "ready" {
			return nil, r.fail(p.failed(ctx, line))
		}
	}
	return r, nil
}

// Measure makes the processes work for warm, which does not count, and for d, which does. It uses a
// name of its own and leaves its keys there, so the server should be one that is thrown away. When
// ctx ends, or after an error, the processes are gone.
func (r *Benching) Measure(ctx context.Context, warm, d time.Duration) (Result, error) {
	defer context.AfterFunc(ctx, r.stop)()
	name := "bench:" + rand.Text()
	for _, p := range r.all {
		// A process that is gone does not read. Later it says nothing either.
		_, _ = fmt.Fprintln(p.in, name, warm.Milliseconds(), d.Milliseconds())
	}
	said := make([]figuresOfJava, len(r.all))
	for i, p := range r.all {
		if line := p.says(); json.Unmarshal([]byte(line), &said[i]) != nil {
			return Result{}, r.fail(p.failed(ctx, line))
		}
	}
	return sum(said), nil
}

// Close kills the processes.
func (r *Benching) Close() { _ = r.fail(nil) }

// fail ends the processes, and adds to the error what they complained of.
func (r *Benching) fail(err error) error {
	r.stop()
	for _, p := range r.all {
		if complaints := p.end(); err != nil && complaints != "" {
			err = fmt.Errorf("%w\n%s", err, complaints)
		}
	}
	r.all = nil
	_ = os.RemoveAll(r.dir)
	return err
}

// figuresOfJava are the words of one process.
type figuresOfJava struct {
	Redisson string
	Seconds  float64
	Turns    []int64 // for each thread
	Failed   int64
	Stuck    int

	Samples             int
	P50us, P99us, Maxus float64
}

// sum combines the results of processes that worked side by side.
func sum(said []figuresOfJava) Result {
	r := Result{Redisson: said[0].Redisson, Samples: said[0].Samples,
		P50: micros(said[0].P50us), P99: micros(said[0].P99us), Max: micros(said[0].Maxus)}
	var threads, squares float64
	for _, s := range said {
		r.Failed, r.Stuck = r.Failed+s.Failed, r.Stuck+s.Stuck
		done := int64(0)
		for _, turns := range s.Turns {
			done += turns
			squares += float64(turns) * float64(turns)
			if turns == 0 {
				r.Starved++
			}
		}
		threads += float64(len(s.Turns))
		r.Done += done
		if done > 0 {
			r.PerSecond += float64(done) / s.Seconds
		}
	}
	if squares > 0 {
		r.Fairness = float64(r.Done) * float64(r.Done) / (threads * squares)
	}
	return r
}

func micros(us float64) time.Duration { return time.Duration(us * float64(time.Microsecond)) }

// benchProcess is a Java process that measures.
type benchProcess struct {
	cmd        *exec.Cmd
	args       []string
	in         io.WriteCloser
	out        *bufio.Reader
	complaints strings.Builder // read it when the process has ended
}

func startBenching(ctx context.Context, classPath string, args []string) (*benchProcess, error) {
	p := &benchProcess{cmd: exec.CommandContext(ctx, "java", arguments(classPath, []string{"-Xmx2g"}, args...)...), args: args}
	p.cmd.Stderr = &p.complaints
	p.cmd.WaitDelay = time.Second
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return p, p.cmd.Start()
}

// says returns the next line that the process says, or "" if the process is gone.
func (p *benchProcess) says() string {
	line, err := p.out.ReadString('\n')
	if err != nil {
		return ""
	}
	return strings.TrimSpace(line)
}

// failed returns an error with what the process said in place of the expected line.
func (p *benchProcess) failed(ctx context.Context, line string) error {
	return errors.Join(fmt.Errorf("interop: bench %v says %q", p.args, line), ctx.Err())
}

// end waits until the process has ended, and returns the process's complaints.
func (p *benchProcess) end() (complaints string) {
	_ = p.cmd.Wait() // the process has said everything, or was killed
	return strings.TrimSpace(p.complaints.String())
}
