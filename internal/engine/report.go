// What is told to the user's log handler and metric instruments by goroutines that
// must wait for neither.

package engine

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/telemetry"
)

const (
	// outletRoom is how many things may wait to be told. What comes on top is dropped
	// and counted.
	outletRoom = 1 << 14
	// telling is how much longer than closeGrace Close takes at the most for what the
	// user's code does.
	telling = 100 * time.Millisecond
)

// outlet calls what was put into it, in order, on a goroutine of its own. The
// functions call handlers of the user's. A handler may block or panic: whoever puts
// something in never waits, and a panic ends nothing but the one call.
type outlet struct {
	mu      sync.Mutex
	queue   []func()
	counts  map[count]int64 // what is to be counted, summed up, so that none is dropped
	dropped int             // since lost was called last
	running bool
	closed  bool          // nothing more is taken
	left    bool          // Close waits no longer: what is queued is not called any more
	idle    chan struct{} // closed when the goroutine has ended; nil if Close does not wait

	add  func(count, int64) // counts
	lost func(n int)        // says that n were dropped
}

// count is a counter with its attributes.
type count struct {
	counter counter
	kind    string
	outcome telemetry.Outcome
	reason  string
}

type counter uint8

const (
	countActive counter = iota
	countLost
	countRenewals
)

// put has f called soon.
func (o *outlet) put(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
	case len(o.queue) >= outletRoom:
		o.dropped++
	default:
		o.queue = append(o.queue, f)
		o.start()
	}
}

// count has n added to a counter soon.
func (o *outlet) count(c count, n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if o.counts == nil {
		o.counts = make(map[count]int64)
	}
	o.counts[c] += n
	o.start()
}

// start starts the goroutine unless it runs. The caller holds the mutex.
func (o *outlet) start() {
	if !o.running {
		o.running = true
		go o.deliver()
	}
}

// deliver calls what was put in until there is nothing left.
func (o *outlet) deliver() {
	for {
		queue, counts, dropped, more := o.take()
		if !more {
			return
		}
		for c, n := range counts {
			o.call(func() { o.add(c, n) })
		}
		for _, f := range queue {
			if !o.call(f) {
				dropped++
			}
		}
		if dropped > 0 {
			o.call(func() { o.lost(dropped) })
		}
	}
}

// take takes all that waits. It reports false, and ends the goroutine, if that is
// nothing.
func (o *outlet) take() (queue []func(), counts map[count]int64, dropped int, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	queue, counts, dropped = o.queue, o.counts, o.dropped
	o.queue, o.counts, o.dropped = nil, nil, 0
	if !o.left && len(queue)+len(counts)+dropped > 0 {
		return queue, counts, dropped, true
	}
	o.running = false
	if o.idle != nil {
		close(o.idle)
		o.idle = nil
	}
	return nil, nil, 0, false
}

// call calls f, unless Close waits no longer. It reports false if f panicked.
func (o *outlet) call(f func()) (done bool) {
	o.mu.Lock()
	left := o.left
	o.mu.Unlock()
	if left {
		return true
	}
	defer func() { done = recover() == nil }()
	f()
	return true
}

// close takes nothing more, and returns when all was called, or at that time. A
// handler that has not returned by then is left behind, and nothing is called after it.
func (o *outlet) close(until time.Time) {
	o.mu.Lock()
	o.closed = true
	var idle chan struct{}
	if o.running {
		idle = make(chan struct{})
		o.idle = idle
	}
	o.mu.Unlock()
	if idle == nil {
		return
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
		o.mu.Lock()
		o.left = true
		o.mu.Unlock()
	}
}

// reports are the outlets of one Client: one for its log and one for its metrics, so
// that a log handler that blocks keeps no loss from being counted.
type reports struct {
	log     outlet
	metrics outlet
}

// begin has the reports go to the Engine's telemetry, and returns the logger whose
// lines go to log.
func (r *reports) begin(tel *telemetry.Telemetry, log *slog.Logger) *slog.Logger {
	r.log.lost = func(n int) {
		log.Warn("holdfast: log lines were lost: the handler was too slow, or panicked", "lines", n)
	}
	r.metrics.lost = func(n int) {
		r.log.put(func() {
			log.Warn("holdfast: measurements were lost: an instrument was too slow, or panicked", "measurements", n)
		})
	}
	r.metrics.add = func(c count, n int64) {
		switch c.counter {
		case countActive:
			tel.Active(c.kind, n)
		case countLost:
			tel.Lost(c.kind, c.reason, n)
		case countRenewals:
			tel.Renewed(c.kind, c.outcome, n)
		}
	}
	return slog.New(handler{&r.log, log.Handler()})
}

// close ends both outlets by that time.
func (r *reports) close(until time.Time) {
	r.metrics.close(until) // what it has lost it says in the log
	r.log.close(until)
}

// CountLost counts a hold that ended without being released.
func (e *Engine) CountLost(kind, reason string) {
	if e.Telemetry == nil {
		return
	}
	e.reports.metrics.count(count{counter: countActive, kind: kind}, -1)
	e.reports.metrics.count(count{counter: countLost, kind: kind, reason: reason}, 1)
}

// CountRenewal counts a renewal that ended so.
func (e *Engine) CountRenewal(kind string, outcome telemetry.Outcome) {
	if e.Telemetry == nil {
		return
	}
	e.reports.metrics.count(count{counter: countRenewals, kind: kind, outcome: outcome}, 1)
}

// measure has f record something soon.
func (e *Engine) measure(f func()) {
	if e.Telemetry != nil {
		e.reports.metrics.put(f)
	}
}

// LogName returns a name as a log line has it: not quoted, as the handler does that
// where it must, and not longer than is read.
func LogName(name string) string {
	const longest = 128
	if len(name) > longest {
		return name[:longest] + "…"
	}
	return name
}

// LogTime returns a duration as every handler writes it alike: slog's own for JSON
// writes a number of nanoseconds.
func LogTime(d time.Duration) string { return d.Round(time.Microsecond).String() }

// handler puts log records into an outlet. Whether the user's handler wants a record
// is asked there as well, since that is the user's code too.
type handler struct {
	outlet *outlet
	users  slog.Handler
}

func (h handler) Enabled(context.Context, slog.Level) bool { return h.users != slog.DiscardHandler }

func (h handler) Handle(_ context.Context, r slog.Record) error {
	h.outlet.put(func() {
		ctx := context.Background() // the caller's may have ended
		if h.users.Enabled(ctx, r.Level) {
			_ = h.users.Handle(ctx, r)
		}
	})
	return nil
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.outlet, h.users.WithAttrs(attrs)}
}

func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.outlet, h.users.WithGroup(name)}
}
