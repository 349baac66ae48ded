// Package crew runs a workload in processes of its own, and combines what these processes measured.
package crew

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/bench/internal/peer"
	"github.com/holdfast-go/holdfast/bench/internal/work"
)

// Hung is the report on a contender that did not end, or did nothing.
const Hung = "hung"

// Run is one measurement.
type Run struct {
	Workload  work.Workload
	Contender string
	Quick     bool
	Warm      time.Duration // before the measured window
	Window    time.Duration
	Profiles  string // the folder for CPU profiles, "" for none
}

// setup is how long the preparations of a run may take.
const setup = time.Minute

// Measure does one run on that server. It deletes everything on the server first.
func Measure(ctx context.Context, server *measure.Server, r Run) (Figures, error) {
	ctx, cancel := context.WithTimeout(ctx, setup+r.Warm+r.Window+2*farewell)
	defer cancel()
	if err := server.Empty(ctx); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	name := fmt.Sprintf("bench:%d", time.Now().UnixMilli()%1_000_000)
	var children []*child
	defer func() {
		for _, c := range children {
			c.end()
		}
	}()
	for i := range r.Workload.Processes {
		c, err := launch(ctx, r.job(server.Addr, name, dir, i))
		if err != nil {
			return nil, err
		}
		children = append(children, c)
	}
	parts, served, err := r.conduct(ctx, server, children)
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		err = fmt.Errorf("%s: no answer in time", Hung)
	}
	if err != nil {
		return nil, err
	}
	f, err := figures(r.Workload, parts, served)
	if contender, _ := peer.Find(r.Contender); contender.Apart {
		for _, ofRedis := range []string{CommandsPerOp, CommandsPerSecond, ServerPerOp, ServerPerSecond} {
			delete(f, ofRedis)
		}
	}
	return f, err
}

func (r Run) job(addr, name, dir string, process int) job {
	j := job{
		Workload: r.Workload.Name, Contender: r.Contender, Addr: addr, Name: name, Process: process,
		Processes: r.Workload.Processes, Quick: r.Quick, Dir: dir,
	}
	if r.Profiles != "" {
		file := fmt.Sprintf("%s, %s, %d, %s.pprof", r.Workload.Name, r.Contender, process, name)
		j.Profile = filepath.Join(r.Profiles, strings.NewReplacer("/", "-", " ", "-", ":", "-", ",", "").Replace(file))
	}
	return j
}

// conduct leads the children through the run.
func (r Run) conduct(ctx context.Context, server *measure.Server, children []*child) ([]measure.Part, measure.Served, error) {
	var served measure.Served
	for _, c := range children {
		if line, err := c.line(); err != nil || line != ready {
			return nil, served, fmt.Errorf("%w: %s %w", err, line, c.complaint())
		}
	}
	tell(children, start)
	if err := sleep(ctx, r.Warm); err != nil {
		return nil, served, err
	}
	contender, _ := peer.Find(r.Contender) // a contender that is no peer sends only scripts
	before, err1 := server.Served(ctx, contender.Sends...)
	tell(children, measured)
	err2 := sleep(ctx, r.Window)
	after, err3 := server.Served(ctx, contender.Sends...) // before the children begin to tidy up
	tell(children, stop)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, served, err
	}
	parts := make([]measure.Part, len(children))
	for i, c := range children {
		line, err := c.line()
		if err == nil {
			err = json.Unmarshal([]byte(line), &parts[i])
		}
		if err != nil {
			return nil, served, fmt.Errorf("%w: %w", err, c.complaint())
		}
	}
	return parts, after.Since(before), nil
}

func tell(children []*child, line string) {
	for _, c := range children {
		fmt.Fprintln(c.in, line) // a child that is gone does not answer later
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// child is one of the processes.
type child struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	errors strings.Builder
}

// launch starts this program as a child. The child is killed when ctx ends.
func launch(ctx context.Context, j job) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.CommandContext(ctx, self)}
	c.cmd.Env = append(os.Environ(), envJob+"="+string(text))
	c.cmd.Stderr = &c.errors
	in, err1 := c.cmd.StdinPipe()
	out, err2 := c.cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	c.in, c.out = in, bufio.NewReader(out)
	return c, c.cmd.Start()
}

func (c *child) line() (string, error) {
	line, err := c.out.ReadString('\n')
	return strings.TrimSpace(line), err
}

// complaint ends the process and returns what it wrote to its standard error.
func (c *child) complaint() error {
	c.end()
	return errors.New(strings.TrimSpace(c.errors.String()))
}

// end kills the process if it has not ended, and waits for it.
func (c *child) end() {
	if c.cmd.ProcessState != nil {
		return
	}
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}
