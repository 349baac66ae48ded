// Measuring Redisson, for comparison.

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

// Bench measures Redisson on one Redis server, in Java processes that live for one
// measurement each. They need Java 17 and Maven; the first call downloads and
// compiles for a minute or so, and without either the error matches ErrNoJava.
//
// A measurement that lasts d warms up for the first quarter of it, which is not
// counted. Each works at a name of its own and leaves its keys there, so the server
// should be one that is thrown away. When ctx ends, the processes are killed.
type Bench struct {
	Addr    string // of the server, host:port; it has no password
	Version string // of Redisson; Newest if empty

	// Where several clients contend, which share no connection and no subscription:
	// each in a process of its own, or all in one. With few cores one process is the
	// better case for Java, which then compiles its code once.
	Clients   int  // 1 if 0
	Processes bool // each client in a process of its own
}

// Result is what was measured. Those of throughput have Done, PerSecond, Fairness and
// Starved, those of latency have the times.
type Result struct {
	Redisson string // its version, as it says itself

	Done      int64   // in the time that counts
	PerSecond float64 // of Done
	Fairness  float64 // Jain's index of what each thread had: 1 if all had the same
	Starved   int     // threads that had nothing
	Failed    int64   // calls from which an exception came
	Stuck     int     // threads that still waited half a minute after the end

	Samples       int
	P50, P99, Max time.Duration
}

// Pairs has so many threads of one client lock and unlock, each at a name of its own,
// by an RLock.
func (b Bench) Pairs(ctx context.Context, threads int, d time.Duration) (Result, error) {
	return b.measure(ctx, 1, func(int) []any { return []any{"pairs", "lock", threads, d.Milliseconds()} })
}

// Handoff measures the time from just before the unlock of an RLock in one client to
// the grant in another, which sleeps in lock().
func (b Bench) Handoff(ctx context.Context, d time.Duration) (Result, error) {
	return b.measure(ctx, 1, func(int) []any { return []any{"handoff", "lock", d.Milliseconds()} })
}

// Lock has so many threads in all lock and unlock one RLock, in a loop.
func (b Bench) Lock(ctx context.Context, threads int, d time.Duration) (Result, error) {
	return b.contended(ctx, d, threads, "contended", "lock")
}

// FairLock has so many threads in all lock and unlock one RFairLock, in a loop: all
// but one of them wait.
func (b Bench) FairLock(ctx context.Context, threads int, d time.Duration) (Result, error) {
	return b.contended(ctx, d, threads, "contended", "fair")
}

// Semaphore has so many threads in all acquire and release one of so many permits of
// an RSemaphore, in a loop.
func (b Bench) Semaphore(ctx context.Context, permits, threads int, d time.Duration) (Result, error) {
	return b.contended(ctx, d, threads, "semaphore", permits)
}

// ReadWrite has so many threads in all lock and unlock one RReadWriteLock, in a loop;
// that many of a hundred times the read side, else the write side.
func (b Bench) ReadWrite(ctx context.Context, reads, threads int, d time.Duration) (Result, error) {
	return b.contended(ctx, d, threads, "rw", reads)
}

// Latch measures the time from the count-down that opens an RCountDownLatch to the
// moment when the last of so many waiting threads is awake. They are all in one
// process.
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

// measure starts that many processes, lets them begin together, and adds up what they
// say. The words are those of java/.../Bench.java.
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
		// One that is gone does not read, and then says nothing either.
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
	Turns    []int64 // of each thread
	Failed   int64
	Stuck    int

	Samples             int
	P50us, P99us, Maxus float64
}

// sum makes one result of those of processes that worked side by side.
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
	complaints strings.Builder // to be read when the process has ended
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

// says returns the next line that the process says, "" if it is gone.
func (p *benching) says() string {
	line, err := p.out.ReadString('\n')
	if err != nil {
		return ""
	}
	return strings.TrimSpace(line)
}

// failed tells what the process said in place of what it should have.
func (p *benching) failed(ctx context.Context, line string) error {
	return errors.Join(fmt.Errorf("interop: bench %v says %q", p.args, line), ctx.Err())
}

// end returns when the process has ended, and what it complained of.
func (p *benching) end() (complaints string) {
	_ = p.cmd.Wait() // it has said all, or was killed
	return strings.TrimSpace(p.complaints.String())
}
