// A process of a run: this program, started anew as a child.

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
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/measure"
)

// envJob is the environment variable in which a child finds its job.
const envJob = "HOLDFAST_SCALE_JOB"

// job is the work of one child. One of its fields is set.
type job struct {
	Addr   string
	Holder *holder `json:",omitempty"`
	Busy   *busy   `json:",omitempty"`
	Crowd  *crowd  `json:",omitempty"`
	Sharer *sharer `json:",omitempty"`

	Waiter    *waiter    `json:",omitempty"`
	Gathering *gathering `json:",omitempty"`
	Contender *contender `json:",omitempty"`
}

// work is one kind of job. run returns when ctx ends.
type work interface {
	run(ctx context.Context, addr string, now *progress)
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

func (j *job) work() work {
	switch {
	case j.Holder != nil:
		return j.Holder
	case j.Busy != nil:
		return j.Busy
	case j.Waiter != nil:
		return j.Waiter
	case j.Contender != nil:
		return j.Contender
	case j.Gathering != nil:
		return j.Gathering
	case j.Sharer != nil:
		return j.Sharer
	default:
		return j.Crowd
	}
}

// do works until the parent closes the standard input. It sends its state ten times a second.
func (j *job) do() error {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var now progress
	var working sync.WaitGroup
	working.Go(func() { j.work().run(ctx, j.Addr, &now) })
	out := json.NewEncoder(os.Stdout)
	for tick := time.Tick(100 * time.Millisecond); ctx.Err() == nil; {
		select {
		case <-tick:
		case <-ctx.Done():
		}
		s := now.state()
		s.CPU, s.RSS = measure.CPU(), measure.RSS()
		if err := out.Encode(s); err != nil {
			return err
		}
	}
	return nil
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

// listen keeps the last state that the child has sent. It ends with the child.
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

// sum adds up the states of the processes.
func sum(processes []*process) (all state) {
	for _, p := range processes {
		s := p.state()
		all.Granted += s.Granted
		all.Lost += s.Lost
		all.Served += s.Served
		all.Dials += s.Dials
		all.CPU += s.CPU
		all.RSS += s.RSS
	}
	return all
}

func (p *process) end() {
	p.stdin.Close()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}
