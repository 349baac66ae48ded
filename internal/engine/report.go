// Reports to the user's log handler and metric instruments, made by goroutines that must not wait
// for either.

package engine

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/telemetry"
)

const (
	// outletRoom is how many reports may wait in an outlet. Further ones are dropped and counted.
	outletRoom = 1 << 14
	// tellingGrace is how much longer than closeGrace Close waits at most for the user's code.
	tellingGrace = 100 * time.Millisecond
)

// outlet calls the functions that were put into it, in order, on a goroutine of its own. They call
// the user's handlers, which may block or panic. The goroutine that puts a function in never waits,
// and a panic ends only that one call.
type outlet struct {
	mu      sync.Mutex
	queue   []func()
	counts  map[count]int64 // sums of what is to be counted, so that no count is dropped
	dropped int             // after the last call of lost
	running bool
	closed  bool          // nothing more is taken
	left    bool          // Close waits no longer: what is queued is not called any more
	idle    chan struct{} // closed when the goroutine has ended; nil if Close does not wait

	add  func(count, int64) // adds to a counter
	lost func(n int)        // reports that n were dropped
}

// count is a counter with its attributes.
type count struct {
	counter counter
	kind    telemetry.Kind
	outcome telemetry.Outcome
	reason  string
}

type counter uint8

const (
	countActive counter = iota
	countLost
	countRenewals
	countPermits
)

// put queues f, which is called soon. If the queue is full, f is dropped and counted.
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

// deliver calls what was put in until nothing is left.
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

// take takes everything that is queued. If there is nothing, or Close waits no longer, it reports
// false, and the goroutine ends.
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

// close makes the outlet accept nothing more. It returns when every queued function was called, or
// at the time until at the latest. A handler that has not returned by then is left behind, and
// nothing is called after it.
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

// reports are the outlets of one Client: one for its log and one for its metrics, so that a log
// handler that blocks does not keep a loss from being counted.
type reports struct {
	log     outlet
	metrics outlet
}

// begin connects the outlets with the Client's telemetry. It returns a logger whose lines reach log
// through the outlet.
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
		case countPermits:
			tel.Permits(c.kind, n)
		}
	}
	return slog.New(handler{&r.log, log.Handler()})
}

// close closes both outlets, by that time at the latest.
func (r *reports) close(until time.Time) {
	r.metrics.close(until) // it reports in the log what it has lost
	r.log.close(until)
}

// CountLost counts a hold that ended without being released.
func (e *Engine) CountLost(kind telemetry.Kind, reason string) {
	if e.Telemetry == nil {
		return
	}
	e.reports.metrics.count(count{counter: countActive, kind: kind}, -1)
	e.reports.metrics.count(count{counter: countLost, kind: kind, reason: reason}, 1)
}

// CountExpired counts a hold that ended as agreed, after it had been held for that long.
func (e *Engine) CountExpired(kind telemetry.Kind, held time.Duration) {
	if e.Telemetry == nil {
		return
	}
	e.reports.metrics.count(count{counter: countActive, kind: kind}, -1)
	e.measure(func() { e.Telemetry.Expired(kind, held) })
}

// CountPermits counts permits that this Client holds from now on (n above 0), or no longer.
func (e *Engine) CountPermits(kind telemetry.Kind, n int64) {
	if e.Telemetry == nil || n == 0 {
		return
	}
	e.reports.metrics.count(count{counter: countPermits, kind: kind}, n)
}

// CountRenewal counts a renewal with that outcome.
func (e *Engine) CountRenewal(kind telemetry.Kind, outcome telemetry.Outcome) {
	if e.Telemetry == nil {
		return
	}
	e.reports.metrics.count(count{counter: countRenewals, kind: kind, outcome: outcome}, 1)
}

// measure calls f, which records something, soon, if the Client has telemetry.
func (e *Engine) measure(f func()) {
	if e.Telemetry != nil {
		e.reports.metrics.put(f)
	}
}

// LogName returns a name as a log line shows it. It is not quoted, because the handler quotes where
// it must, and it is cut after 128 bytes, because nobody reads more.
func LogName(name string) string {
	const longest = 128
	if len(name) > longest {
		return name[:longest] + "…"
	}
	return name
}

// LogTime returns a duration as text, so that every handler writes it in the same way: slog's JSON
// handler would write a time.Duration as a number of nanoseconds.
func LogTime(d time.Duration) string { return d.Round(time.Microsecond).String() }

// handler puts log records into an outlet. The outlet's goroutine also asks the user's handler
// whether it wants a record, because that too is the user's code.
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
