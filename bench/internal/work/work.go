// Package work has what is done with locks and measured, a file for each.
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

// Workload is one thing that is done over and over, by one library at a time, in one
// or several processes.
type Workload struct {
	Name       string // by which it is chosen, and found in the results: "pairs/256"
	Title      string // in words
	Processes  int
	Contenders []string // peers, or variants that Run knows
	Window     Window
	Idle       bool // nothing is done in it: what is measured is what that costs
	Latency    bool // what is measured is durations: things done are only their number

	// Redisson has Redisson's own harness do the same for a time, the first quarter of
	// which warms up; nil where there is nothing to compare.
	Redisson func(ctx context.Context, b interop.Bench, d time.Duration) (interop.Result, error)

	// Run does the work in one process until ctx ends. It calls Ready once.
	Run func(ctx context.Context, s *Site) error
}

// Window is for how long is measured, if not as long as everything else.
type Window struct {
	Warm, Full, Quick time.Duration // 0: as everything else
	Once              bool          // in one round only, where more would take too long
}

// Site is what one process has to work with.
type Site struct {
	Addr      string // of Redis
	Contender string
	Name      string // which no other run uses; what keys begin with
	Process   int    // from 0
	Processes int
	Quick     bool
	Dir       string // shared by the processes of the run, and empty at first
	Meter     *measure.Meter

	// Ready says that all is prepared, and returns when all processes are.
	Ready func()
}

// All returns the workloads in the order in which they are reported.
func All() []Workload {
	return slices.Concat(pairs(), contended(), handOff(), fair(), semaphores(), readWrite(), latches(),
		renewals(), stripes(), idle(), telemetry())
}

// Find returns the workload of that name.
func Find(name string) (Workload, error) {
	for _, w := range All() {
		if w.Name == name {
			return w, nil
		}
	}
	return Workload{}, fmt.Errorf("no workload is called %q", name)
}

// Open opens the contender, which is a peer.
func (s *Site) Open() (peer.Process, error) {
	p, err := peer.Find(s.Contender)
	if err != nil {
		return nil, err
	}
	return p.Open(s.Addr)
}

// Share returns how many of n workers are this process's.
func (s *Site) Share(n int) int {
	share := n / s.Processes
	if s.Process < n%s.Processes {
		share++
	}
	return share
}

// Locks has n goroutines use a lock each, over and over; work is done under it.
func (s *Site) Locks(ctx context.Context, n int, lock func(i int) peer.Lock, work func()) error {
	return s.Loop(ctx, n, func(i int) Task {
		l := lock(i)
		return func(ctx context.Context) (int64, error) { return 1, l.Pair(ctx, work) }
	})
}

// Task does something and says how often it did it.
type Task func(ctx context.Context) (times int64, err error)

// Loop has n goroutines do a task each, over and over until ctx ends, and counts how
// often it was done. It returns the first error that is not ctx's.
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
