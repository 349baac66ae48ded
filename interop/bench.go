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
	"os/exec"
	"strings"
	"time"
)

// Bench measures Redisson on one Redis server, in Java processes that live for one measurement
// each. The processes need Java 17 and Maven. The first call downloads and compiles for a minute or
// so. Without Java or Maven the error matches ErrNoJava.
//
// A measurement that lasts d warms up for the first quarter of d, which does not count. Each
// measurement uses a name of its own and leaves its keys there, so the server should be one that is
// thrown away. When ctx ends, the processes are killed.
type Bench struct {
	Addr    string // host:port of the server, which has no password
	Version string // of Redisson; Newest if empty

	// In measurements with contention several clients contend, and they share no connection and no
	// subscription. Each client has a process of its own, or all clients are in one process. With
	// few cores one process is the better case for Java, because Java then compiles its code only
	// once.
	Clients   int  // 1 if 0
	Processes bool // each client in a process of its own
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
	Stuck     int     // threads that still waited half a minute after the end

	Samples       int
	P50, P99, Max time.Duration
}

// Pairs makes that many threads of one client lock and unlock an RLock, each thread at a name of
// its own.
func (b Bench) Pairs(ctx context.Context, threads int, d time.Duration) (Result, error) {
	return b.measure(ctx, 1, func(int) []any { return []any{"pairs", "lock", threads, d.Milliseconds()} })
}

// Handoff measures the time from just before the unlock of an RLock in one client to the grant in
// another client, which sleeps in lock().
func (b Bench) Handoff(ctx context.Context, d time.Duration) (Result, error) {
	return b.measure(ctx, 1, func(int) []any { return []any{"handoff", "lock", d.Milliseconds()} })
}

// Lock makes that many threads in all lock and unlock one RLock, in a loop.
func (b Bench) Lock(ctx context.Context, threads int, d time.Duration) (Result, error) {
	return b.contended(ctx, d, threads, "contended", "lock")
}

// FairLock makes that many threads in all lock and unlock one RFairLock, in a loop: at any time all
// threads but one wait.
func (b Bench) FairLock(ctx context.Context, threads int, d time.Duration) (Result, error) {
	return b.contended(ctx, d, threads, "contended", "fair")
}

// Semaphore makes that many threads in all acquire and release one permit of an RSemaphore, in a
// loop. The semaphore has that many permits.
func (b Bench) Semaphore(ctx context.Context, permits, threads int, d time.Duration) (Result, error) {
	return b.contended(ctx, d, threads, "semaphore", permits)
}

// ReadWrite makes that many threads in all lock and unlock one RReadWriteLock, in a loop. Of a
// hundred times, reads times are on the read side, and the rest on the write side.
func (b Bench) ReadWrite(ctx context.Context, reads, threads int, d time.Duration) (Result, error) {
	return b.contended(ctx, d, threads, "rw", reads)
}

// Latch measures the time from the count-down that opens an RCountDownLatch until the last of the
// waiting threads is awake. All threads are in one process.
func (b Bench) Latch(ctx context.Context, waiters, rounds int) (Result, error) {
	return b.measure(ctx, 1, func(int) []any { return []any{"latch", max(b.Clients, 1), waiters, rounds} })
}

// contended measures threads that are shared out among the clients.
func (b Bench) contended(ctx context.Context, d time.Duration, threads int, what ...any) (Result, error) {
	clients := max(b.Clients, 1)
	if !b.Processes {
		return b.measure(ctx, 1, func(int) []any { return append(what, clients, threads, d.Milliseconds()) })
	}
	return b.measure(ctx, clients, func(i int) []any {
		return append(append([]any(nil), what...), 1, (threads+i)/clients, d.Milliseconds())
	})
}

// measure starts that many processes, lets them begin together, and adds up their results. The
// words are the words of java/.../Bench.java.
func (b Bench) measure(ctx context.Context, processes int, words func(i int) []any) (r Result, err error) {
	if b.Version == "" {
		b.Version = Newest
	}
	classPath, err := Build(ctx, b.Version)
	if err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	name := "bench:" + rand.Text()
	all := make([]*benching, 0, processes)
	defer func() {
		cancel()
		for _, p := range all {
			complaints := p.end()
			if err != nil && complaints != "" {
				err = fmt.Errorf("%w\n%s", err, complaints)
			}
		}
	}()
	for i := range processes {
		args := []string{"bench", b.Addr, name}
		for _, word := range words(i) {
			args = append(args, fmt.Sprint(word))
		}
		p, err := startBenching(ctx, classPath, args)
		if err != nil {
			return Result{}, err
		}
		all = append(all, p)
	}
	for _, p := range all {
		if line := p.says(); line != "ready" {
			return Result{}, p.failed(ctx, line)
		}
	}
	for _, p := range all {
		// A process that is gone does not read. Later it says nothing either.
		_, _ = io.WriteString(p.in, "begin\n")
	}
	said := make([]figuresOfJava, processes)
	for i, p := range all {
		if line := p.says(); json.Unmarshal([]byte(line), &said[i]) != nil {
			return Result{}, p.failed(ctx, line)
		}
	}
	return sum(said), nil
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

// benching is a Java process that measures.
type benching struct {
	cmd        *exec.Cmd
	args       []string
	in         io.WriteCloser
	out        *bufio.Reader
	complaints strings.Builder // read it when the process has ended
}

func startBenching(ctx context.Context, classPath string, args []string) (*benching, error) {
	p := &benching{cmd: exec.CommandContext(ctx, "java", arguments(classPath, []string{"-Xmx2g"}, args...)...), args: args}
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
func (p *benching) says() string {
	line, err := p.out.ReadString('\n')
	if err != nil {
		return ""
	}
	return strings.TrimSpace(line)
}

// failed returns an error with what the process said in place of the expected line.
func (p *benching) failed(ctx context.Context, line string) error {
	return errors.Join(fmt.Errorf("interop: bench %v says %q", p.args, line), ctx.Err())
}

// end waits until the process has ended, and returns the process's complaints.
func (p *benching) end() (complaints string) {
	_ = p.cmd.Wait() // the process has said everything, or was killed
	return strings.TrimSpace(p.complaints.String())
}
