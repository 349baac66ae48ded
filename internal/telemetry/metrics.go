// The instruments, and the methods that record into them.

package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// The reasons for Lost: why a hold ended without being released.
const (
	LostServer     = "server"     // a reply said that the hold is no longer there
	LostDeadline   = "deadline"   // no reply came before the local deadline
	LostClosed     = "closed"     // the Client was closed while it lasted
	LostMaxHold    = "max_hold"   // its MaxHold passed
	LostSuperseded = "superseded" // a newer one wanted it
	LostMember     = "member"     // one of the locks of a MultiLock was lost
)

// The reasons for Woken: what ended a waiter's sleep.
const (
	WokenMessage = "message" // a message, or a (re)subscription that may have missed one
	WokenTimer   = "timer"   // the holder's expiry or the bound on the poll
	WokenTurn    = "turn"    // the lock was passed on within this process
)

// The attribute values with which each kind's counters start at 0: see introduceHolds and
// introduceWaits.
var (
	lostReasons  = []string{LostServer, LostDeadline, LostClosed, LostMaxHold, LostSuperseded, LostMember}
	wokenReasons = []string{WokenMessage, WokenTimer, WokenTurn}
	renewalEnds  = []Outcome{OutcomeRenewed, OutcomeGone, OutcomeFailed}
)

// Bucket boundaries, in seconds. A free lock costs a round trip, and a held lock may be waited
// for as long as a request lives. A hold lasts from a few commands to a whole batch job. The
// defaults of OpenTelemetry, made for milliseconds, would put every free lock into one bucket.
var (
	acquireBounds = []float64{
		50e-6, 100e-6, 250e-6, 500e-6,
		1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3,
		1, 2.5, 5, 10, 30, 60,
	}
	holdBounds = []float64{
		500e-6, 1e-3, 5e-3, 10e-3, 50e-3, 100e-3, 500e-3,
		1, 5, 10, 30, 60, 300, 1800, 3600,
	}
	renewalBounds = []float64{
		100e-6, 250e-6, 500e-6,
		1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3,
		1, 2.5, 5, 10,
	}
	renewalsBounds = []float64{0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000}
)

// metrics are the instruments of one meter. The nil *metrics records nothing.
type metrics struct {
	acquire   metric.Float64Histogram
	hold      metric.Float64Histogram
	renewal   metric.Float64Histogram
	batchSize metric.Int64Histogram
	backlog   metric.Int64Histogram

	active  metric.Int64UpDownCounter
	permits metric.Int64UpDownCounter
	waiting metric.Int64UpDownCounter

	renewals   metric.Int64Counter
	lost       metric.Int64Counter
	wakeups    metric.Int64Counter
	reconnects metric.Int64Counter
	longHeld   metric.Int64Counter

	options optionCache
	groups  *groups // nil if names have none
}

func newMetrics(meter metric.Meter, group func(name string) string, at server) (*metrics, error) {
	b := builder{meter: meter}
	m := &metrics{
		acquire: b.seconds("holdfast.acquire.duration", acquireBounds,
			"Time from asking for a lock to having it or giving up."),
		hold: b.seconds("holdfast.hold.duration", holdBounds,
			"Time from the grant of a lock to its release."),
		renewal: b.seconds("holdfast.renewal.duration", renewalBounds,
			"Time from sending one batch of renewals to its last reply."),
		batchSize: b.sizes("holdfast.renewal.batch.size", "{renewal}", renewalsBounds,
			"Renewals sent in one batch."),
		backlog: b.sizes("holdfast.renewal.backlog", "{renewal}", renewalsBounds,
			"Renewals that wait for a server while one batch is sent to it."),
		active: b.level("holdfast.lock.active", "{lock}",
			"Locks that this process holds."),
		permits: b.level("holdfast.permit.active", "{permit}",
			"Permits that this process holds."),
		waiting: b.level("holdfast.waiter.active", "{waiter}",
			"Callers in this process that wait for a lock."),
		renewals: b.count("holdfast.renewals", "{renewal}",
			"Renewals of a lease, by how they ended."),
		lost: b.count("holdfast.lock.lost", "{lock}",
			"Locks that ended without being released."),
		wakeups: b.count("holdfast.wakeups", "{wakeup}",
			"Times a waiter woke to try again, by what woke it."),
		reconnects: b.count("holdfast.pubsub.reconnects", "{reconnect}",
			"Subscription connections rebuilt after a failure."),
		longHeld: b.count("holdfast.lock.long_held", "{lock}",
			"Times a monitor found a lock held for longer than its threshold."),
	}
	if err := errors.Join(b.errs...); err != nil {
		return nil, err
	}
	m.groups = newGroups(group)
	m.options.groups, m.options.server = m.groups, at
	m.reconnects.Add(context.Background(), 0, m.options.get(labels{}).add...)
	return m, nil
}

// meters returns the instruments; nil if nothing is to be recorded.
func (t *Telemetry) meters() *metrics {
	if t == nil {
		return nil
	}
	return t.metrics
}

// adder is a counter.
type adder interface {
	Add(ctx context.Context, n int64, options ...metric.AddOption)
}

// recorder is a histogram of such values.
type recorder[N int64 | float64] interface {
	Record(ctx context.Context, value N, options ...metric.RecordOption)
}

// add adds n to a counter. It and record survive a provider that panics.
func (m *metrics) add(c adder, l labels, n int64) {
	defer survive()
	c.Add(context.Background(), n, m.options.get(l).add...)
}

// record records a value.
func record[N int64 | float64](ctx context.Context, m *metrics, h recorder[N], l labels, value N) {
	defer survive()
	h.Record(ctx, value, m.options.get(l).record...)
}

// introduceHolds sets the counters of that kind's holds to 0 before there is anything to count:
// an alarm on the first loss needs a series from which to rise.
func (m *metrics) introduceHolds(kind Kind) {
	if m.options.has(kind.ended(LostServer)) {
		return
	}
	for _, reason := range lostReasons {
		m.add(m.lost, kind.ended(reason), 0)
	}
	for _, end := range renewalEnds {
		m.add(m.renewals, kind.with(end), 0)
	}
}

// introduceWaits does the same for the counter of that kind's waiters.
func (m *metrics) introduceWaits(kind Kind) {
	if m.options.has(kind.ended(WokenTurn)) {
		return
	}
	for _, reason := range wokenReasons {
		m.add(m.wakeups, kind.ended(reason), 0)
	}
}

func (m *metrics) acquired(ctx context.Context, kind Kind, o Acquired, took time.Duration) {
	if m == nil {
		return
	}
	l := kind.with(o.Outcome)
	l.reentrant = o.Reentrant
	if o.Outcome.failure() {
		l.errorType = errorType(o.Err)
	}
	record(ctx, m, m.acquire, l, took.Seconds())
}

func (m *metrics) held(ctx context.Context, kind Kind, outcome Outcome, held time.Duration, err error) {
	if m == nil {
		return
	}
	l := kind.with(outcome)
	if outcome.failure() {
		l.errorType = errorType(err)
	}
	record(ctx, m, m.hold, l, held.Seconds())
}

// Active counts holds of that kind that began (+1) or ended (-1) in this process. A nested
// acquisition does not count.
func (t *Telemetry) Active(kind Kind, delta int64) {
	if m := t.meters(); m != nil {
		m.introduceHolds(kind)
		m.add(m.active, kind.labels(), delta)
	}
}

// Permits counts permits that this process holds from now on (delta above 0), or no longer.
func (t *Telemetry) Permits(kind Kind, delta int64) {
	if m := t.meters(); m != nil && delta != 0 {
		m.add(m.permits, kind.labels(), delta)
	}
}

// Waiters counts callers that began (+1) or stopped (-1) waiting behind another holder. A
// caller that is granted the lock at its first try never waits.
func (t *Telemetry) Waiters(kind Kind, delta int64) {
	if m := t.meters(); m != nil {
		m.introduceWaits(kind)
		m.add(m.waiting, kind.labels(), delta)
	}
}

// Renewed counts n renewals of that kind with the same outcome: OutcomeRenewed, OutcomeGone or
// OutcomeFailed.
func (t *Telemetry) Renewed(kind Kind, outcome Outcome, n int64) {
	if m := t.meters(); m != nil && n > 0 {
		m.add(m.renewals, kind.with(outcome), n)
	}
}

// RenewalBatch records one batch of n renewals, of any kinds, sent to one server. d is the time
// from its sending to its last reply, or to giving it up.
func (t *Telemetry) RenewalBatch(d time.Duration, n int) {
	if m := t.meters(); m != nil {
		record(context.Background(), m, m.renewal, labels{}, d.Seconds())
		record(context.Background(), m, m.batchSize, labels{}, int64(n))
	}
}

// RenewalBacklog records that n renewals wait for a server while a batch is sent to it.
func (t *Telemetry) RenewalBacklog(n int) {
	if m := t.meters(); m != nil {
		record(context.Background(), m, m.backlog, labels{}, int64(n))
	}
}

// Lost counts n holds that ended without being released. reason is one of LostServer,
// LostDeadline, LostClosed, LostMaxHold, LostSuperseded and LostMember.
func (t *Telemetry) Lost(kind Kind, reason string, n int64) {
	if m := t.meters(); m != nil {
		m.add(m.lost, kind.ended(reason), n)
	}
}

// Expired records a hold of fixed leases that ended as agreed. held is how long it lasted.
func (t *Telemetry) Expired(kind Kind, held time.Duration) {
	t.meters().held(context.Background(), kind, OutcomeExpired, held, nil)
}

// Woken counts one wake-up of a waiter. reason is one of WokenMessage, WokenTimer and
// WokenTurn.
func (t *Telemetry) Woken(kind Kind, reason string) {
	if m := t.meters(); m != nil {
		m.add(m.wakeups, kind.ended(reason), 1)
	}
}

// Reconnected counts a subscription connection that failed and was restored.
func (t *Telemetry) Reconnected() {
	if m := t.meters(); m != nil {
		m.add(m.reconnects, labels{}, 1)
	}
}

// LongHeld counts a lock of that kind that a monitor found held for too long.
func (t *Telemetry) LongHeld(kind Kind) {
	if m := t.meters(); m != nil {
		m.add(m.longHeld, kind.labels(), 1)
	}
}

// builder makes instruments and collects the errors, so that New can return all of them.
type builder struct {
	meter metric.Meter
	errs  []error
}

func (b *builder) seconds(name string, bounds []float64, description string) metric.Float64Histogram {
	h, err := b.meter.Float64Histogram(name, metric.WithUnit("s"),
		metric.WithDescription(description), metric.WithExplicitBucketBoundaries(bounds...))
	return kept(b, h, err)
}

func (b *builder) sizes(name, unit string, bounds []float64, description string) metric.Int64Histogram {
	h, err := b.meter.Int64Histogram(name, metric.WithUnit(unit),
		metric.WithDescription(description), metric.WithExplicitBucketBoundaries(bounds...))
	return kept(b, h, err)
}

func (b *builder) count(name, unit, description string) metric.Int64Counter {
	c, err := b.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
	return kept(b, c, err)
}

func (b *builder) level(name, unit, description string) metric.Int64UpDownCounter {
	c, err := b.meter.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	return kept(b, c, err)
}

func kept[I any](b *builder, instrument I, err error) I {
	if err != nil {
		b.errs = append(b.errs, err)
	}
	return instrument
}
