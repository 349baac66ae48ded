// This file counts events in one process, from one moment to another.

package measure

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// Meter counts what the workers of one process do while the meter's window is open. Any goroutine
// may call its methods.
type Meter struct {
	open      atomic.Bool
	durations Histogram

	mu        sync.Mutex // guards the fields below
	workers   []*Worker
	figures   map[string]float64
	bystander bool
	began     time.Time
	before    Usage
	part      Part
}

// Part is what one process measured.
type Part struct {
	Seconds   float64            `json:"seconds"` // how long the window was open
	Done      []int64            `json:"done"`    // for each worker
	Durations map[int]int64      `json:"durations"`
	Usage     Usage              `json:"usage"`
	Figures   map[string]float64 `json:"figures"`
	Failed    string             `json:"failed,omitempty"` // why the process did not come to an end
}

// Worker does one thing over and over. Only one goroutine uses a Worker.
type Worker struct {
	meter *Meter
	done  atomic.Int64
	_     [48]byte // two workers never write the same cache line
}

// Worker returns a new Worker of this meter.
func (m *Meter) Worker() *Worker {
	w := &Worker{meter: m}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.workers = append(m.workers, w)
	return w
}

// Did counts that the worker has now done something that many times, if the window is open.
func (w *Worker) Did(times int64) {
	if w.meter.open.Load() {
		w.done.Add(times)
	}
}

// Took counts one duration, if the window is open.
func (m *Meter) Took(d time.Duration) {
	if m.open.Load() {
		m.durations.Add(d)
	}
}

// Set notes a figure of the workload's own. The report sums the values of several processes.
func (m *Meter) Set(name string, value float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.figures == nil {
		m.figures = make(map[string]float64)
	}
	m.figures[name] = value
}

// Bystander leaves out what this process uses, because this process is not what is measured.
func (m *Meter) Bystander() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bystander = true
}

// Open opens the window. What the workers did before does not count.
func (m *Meter) Open() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.durations.Reset()
	m.before, m.began = Used(), time.Now()
	m.open.Store(true)
}

// Close closes the window.
func (m *Meter) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open.Store(false)
	m.part = Part{Seconds: time.Since(m.began).Seconds(), Durations: m.durations.Buckets()}
	if !m.bystander {
		m.part.Usage = Used().Since(m.before)
	}
	for _, w := range m.workers {
		m.part.Done = append(m.part.Done, w.done.Load())
	}
}

// Part returns what the meter measured while the window was open, and the figures that were set.
func (m *Meter) Part() Part {
	m.mu.Lock()
	defer m.mu.Unlock()
	part := m.part
	part.Figures = maps.Clone(m.figures)
	return part
}
