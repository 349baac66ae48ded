// A child is one of the processes that do the work: this program, started anew.

package crew

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/bench/internal/work"
)

// envJob is the environment variable in which a process finds its job.
const envJob = "HOLDFAST_BENCH_JOB"

// job is the work of one process.
type job struct {
	Workload  string
	Contender string
	Addr      string
	Name      string
	Process   int
	Processes int
	Quick     bool
	Dir       string
	Profile   string // the file for a CPU profile of the window, "" for none
}

// These are the lines between parent and child, in this order. The parent sends all but the first.
const (
	ready    = "ready" // the child sends this
	start    = "start"
	measured = "measure"
	stop     = "stop" // the child answers this with a measure.Part as JSON
)

// farewell is how long workers may take to end after the order to stop. A worker that takes longer
// waits for something that does not come.
const farewell = 15 * time.Second

// Child does the work and does not return, if this process was started as a child, or by one.
func Child() {
	work.Victim()
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

// do follows the parent's lines.
func (j job) do() error {
	workload, err := work.Find(j.Workload)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	expect := func(want string) error {
		if !lines.Scan() || lines.Text() != want {
			return fmt.Errorf("the parent says %q, not %q", lines.Text(), want)
		}
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	meter := new(measure.Meter)
	prepared, started := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- workload.Run(ctx, j.site(meter, func() {
			close(prepared)
			<-started
		}))
	}()
	select {
	case <-prepared:
	case err := <-ended:
		return fmt.Errorf("%s of %s ended before it began: %w", j.Workload, j.Contender, err)
	}
	fmt.Println(ready)
	if err := expect(start); err != nil {
		return err
	}
	close(started)
	if err := expect(measured); err != nil {
		return err
	}
	if err := j.window(meter, func() error { return expect(stop) }); err != nil {
		return err
	}
	cancel()
	return json.NewEncoder(os.Stdout).Encode(partOf(meter, ended))
}

func (j job) site(meter *measure.Meter, ready func()) *work.Site {
	return &work.Site{
		Addr: j.Addr, Contender: j.Contender, Name: j.Name, Process: j.Process, Processes: j.Processes,
		Quick: j.Quick, Dir: j.Dir, Meter: meter, Ready: ready,
	}
}

// window measures until the parent says stop. It writes a profile if the job names a file for it.
func (j job) window(meter *measure.Meter, stopped func() error) error {
	if j.Profile != "" {
		file, err := os.Create(j.Profile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	meter.Open()
	err := stopped()
	meter.Close()
	return err
}

// partOf returns what the process measured, and the reason if the workers did not end well.
func partOf(meter *measure.Meter, ended <-chan error) measure.Part {
	var failure error
	select {
	case failure = <-ended:
	case <-time.After(farewell):
		failure = fmt.Errorf("%s: %v after the end its workers still wait", Hung, farewell)
	}
	part := meter.Part()
	if failure != nil {
		part.Failed = strings.ToValidUTF8(failure.Error(), "?")
	}
	return part
}
