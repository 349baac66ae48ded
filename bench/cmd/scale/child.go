// The processes: the holder, and those that keep the server busy.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/measure"
)

// envJob is the environment variable in which a process finds its job.
const envJob = "HOLDFAST_SCALE_JOB"

type job struct {
	run
	Addr string
	Busy bool // it keeps the server busy; the holder if it is false
	Name string
}

// state is what a child tells each second.
type state struct {
	Granted int64 // by the holder, or pairs of a busy process
	Lost    int64
	CPU     time.Duration
	Heap    uint64
}

// child does the work and does not return, if this process was started as a child.
func child() {
	text, isChild := os.LookupEnv(envJob)
	if !isChild {
		return
	}
	var j job
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		err = j.do()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// do works until the parent closes the standard input.
func (j *job) do() error {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	rdb := redis.NewClient(&redis.Options{Addr: j.Addr, Dialer: dialAway(j.Away)})
	defer rdb.Close()
	client := holdfast.New(rdb)
	var granted, lost atomic.Int64
	var all sync.WaitGroup
	if j.Busy {
		for i := range j.Goroutines {
			all.Go(func() { j.pairs(ctx, client, i, &granted) })
		}
	} else {
		var next atomic.Int64
		for range j.Callers {
			all.Go(func() { j.hold(ctx, client, &next, &granted, &lost) })
		}
	}
	out := json.NewEncoder(os.Stdout)
	for tick := time.Tick(time.Second); ctx.Err() == nil; {
		select {
		case <-tick:
		case <-ctx.Done():
		}
		s := state{Granted: granted.Load(), Lost: lost.Load(), CPU: measure.Used().CPU}
		if err := out.Encode(s); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) pairs(ctx context.Context, client *holdfast.Client, i int, done *atomic.Int64) {
	m := client.Mutex(fmt.Sprintf("%s:%d", j.Name, i))
	for ctx.Err() == nil {
		l, err := m.Lock(ctx)
		if err != nil {
			continue
		}
		_ = l.Release(ctx) // a lease that was not released runs out
		done.Add(1)
	}
}

// hold takes its share of the locks and keeps them.
func (j *job) hold(ctx context.Context, client *holdfast.Client, next, granted, lost *atomic.Int64) {
	var leases []*holdfast.Lease
	for i := next.Add(1) - 1; i < int64(j.Locks) && ctx.Err() == nil; i = next.Add(1) - 1 {
		l, err := client.Mutex(fmt.Sprintf("%s:%d", j.Name, i), holdfast.Renewed(j.Lease)).Lock(ctx)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			lost.Add(1)
			continue
		}
		granted.Add(1)
		leases = append(leases, l)
	}
	gone := make([]bool, len(leases))
	for tick := time.Tick(time.Second); ; {
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
		for i, l := range leases {
			if !gone[i] && l.Err() != nil {
				gone[i] = true
				lost.Add(1)
			}
		}
	}
}

// process is a child as its parent sees it.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	mu    sync.Mutex
	last  state // guarded by mu
}

func launch(ctx context.Context, j job) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, self)}
	p.cmd.Env = append(os.Environ(), envJob+"="+string(text))
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.listen(out)
	return p, nil
}

func (p *process) listen(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var s state
		if json.Unmarshal(lines.Bytes(), &s) == nil {
			p.mu.Lock()
			p.last = s
			p.mu.Unlock()
		}
	}
}

func (p *process) state() state {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

func (p *process) end() {
	p.stdin.Close()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}
