// Package work has the workloads that are measured, one in each file.
package work

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/bench/internal/peer"
	"github.com/holdfast-go/holdfast/interop"
)

// Workload is one thing that one library at a time does over and over, in one or several processes.
type Workload struct {
	Name       string // selects it, and finds it in the results: "pairs/256"
	Title      string // in words
	Processes  int
	Contenders []string // peers, or variants that Run knows
	Window     Window
	Idle       bool // the workload does nothing: the costs are measured
	Latency    bool // durations are measured: the things done are only their number

	// Redisson is the same for Redisson's own harness, nil where there is nothing to compare.
	Redisson *interop.Load

	// Scale has the words for cmd/scale, which then does the work in place of Run. nil if Run does.
	Scale func(contender string, quick bool) []string

	// Run does the work in one process until ctx ends. It calls Ready once.
	Run func(ctx context.Context, s *Site) error
}

// Window says how long the workload is measured, if not as long as every other workload.
type Window struct {
	Warm, Full, Quick time.Duration // 0: as every other workload
	Rounds            int           // 0: as every other workload; fewer where a round takes long
	Setup             time.Duration // how long the preparations take, about
}

// Site is what one process has for its work.
type Site struct {
	Addr      string // of Redis
	Contender string
	Name      string // no other run uses it; keys begin with it
	Process   int    // from 0
	Processes int
	Quick     bool
	Dir       string // shared by the processes of the run, and empty at first
	Meter     *measure.Meter

	// Ready says that this process is prepared, and returns when all processes are.
	Ready func()
}

// All returns the workloads in the order in which they are reported.
func All() []Workload {
	return slices.Concat(pairs(), contended(), handOff(), fair(), semaphores(), readWrite(), latches(), elections(), onces(),
		renewals(), neighbours(), stripes(), idle(), telemetry(), scale())
}

// redisson returns the address of a load, for a field.
func redisson(l interop.Load) *interop.Load { return &l }

// Find returns the workload of that name.
func Find(name string) (Workload, error) {
	for _, w := range All() {
		if w.Name == name {
			return w, nil
		}
	}
	return Workload{}, fmt.Errorf("no workload is called %q", name)
}

// Open opens the contender, which must be a peer.
func (s *Site) Open() (peer.Process, error) {
	p, err := peer.Find(s.Contender)
	if err != nil {
		return nil, err
	}
	return p.Open(s.Addr)
}

// Share returns the number of workers in this process, out of n in all processes.
func (s *Site) Share(n int) int {
	share := n / s.Processes
	if s.Process < n%s.Processes {
		share++
	}
	return share
}

// Locks makes n goroutines use a lock each, over and over, with work under the lock.
func (s *Site) Locks(ctx context.Context, n int, lock func(i int) peer.Lock, work func()) error {
	return s.Loop(ctx, n, func(i int) Task {
		l := lock(i)
		return func(ctx context.Context) (int64, error) { return 1, l.Pair(ctx, work) }
	})
}

// Task does something, and returns how often it did it.
type Task func(ctx context.Context) (times int64, err error)

// Loop makes n goroutines do a task each, over and over until ctx ends, and counts how often the
// tasks were done. It returns the first error that is not ctx's.
func (s *Site) Loop(ctx context.Context, n int, task func(i int) Task) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tasks := make([]Task, n)
	for i := range tasks {
		tasks[i] = task(i)
	}
	s.Ready()
	var all sync.WaitGroup
	for _, do := range tasks {
		worker := s.Meter.Worker()
		all.Go(func() {
			for ctx.Err() == nil {
				times, err := do(ctx)
				if err != nil {
					cancel(err) // does nothing if ctx has ended
					return
				}
				worker.Did(times)
			}
		})
	}
	all.Wait()
	if cause := context.Cause(ctx); cause != context.Canceled {
		return cause
	}
	return nil
}
