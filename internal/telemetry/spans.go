// The two operations that have a span of their own: acquiring and releasing.

package telemetry

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

const (
	spanAcquire = "holdfast.lock.acquire"
	spanRelease = "holdfast.lock.release"
)

// Attributes that only spans carry: each has a value of its own per operation.
const (
	keyName     = attribute.Key("holdfast.name")
	keyAttempts = attribute.Key("holdfast.attempts")
	keyWaited   = attribute.Key("holdfast.wait.duration")
	keyHeld     = attribute.Key("holdfast.hold.duration")
	keyToken    = attribute.Key("holdfast.token")
)

// Acquisition is one acquisition under way. Its zero value records nothing.
type Acquisition struct {
	operation
	start time.Time
}

// Acquired is how an acquisition ended.
type Acquired struct {
	Outcome   Outcome
	Attempts  int           // scripts that asked for the lock, among them those sent again
	Waited    time.Duration // the part of it spent parked behind other holders, or ToldByParts
	Reentrant bool          // the caller held it already
	Token     int64         // fencing number of the grant; 0 if there is none
	Err       error         // what the caller is given; used for failures only
}

// ToldByParts is given in place of a time waited where the parts of a Whole tell
// each its own.
const ToldByParts time.Duration = -1

// Acquire starts the span holdfast.lock.acquire as a child of the span in ctx,
// and the clock of holdfast.acquire.duration. The ctx it returns carries the
// span; the Acquisition must be ended, once. kind comes from a short list that
// the caller knows ("mutex", "rwlock.read"); name may be any bytes.
func (t *Telemetry) Acquire(ctx context.Context, kind, name string) (context.Context, Acquisition) {
	if t == nil {
		return ctx, Acquisition{}
	}
	op := t.begin(t.partOf(ctx), spanAcquire, kind, name)
	return op.ctx, Acquisition{operation: op, start: time.Now()}
}

// Elapsed returns for how long it has been under way; 0 where nothing is recorded.
func (a Acquisition) Elapsed() time.Duration {
	if a.t == nil {
		return 0
	}
	return time.Since(a.start)
}

// End ends the span and records the duration, both with what o says.
func (a Acquisition) End(o Acquired) {
	if a.t == nil {
		return
	}
	a.t.metrics.acquired(a.ctx, a.kind, o, time.Since(a.start))
	if !a.recording() {
		a.end(o.Outcome, o.Err, nil)
		return
	}
	attrs := make([]attribute.KeyValue, 0, 5)
	attrs = append(attrs, keyReentrant.Bool(o.Reentrant), keyAttempts.Int(o.Attempts))
	if o.Waited != ToldByParts {
		attrs = append(attrs, keyWaited.Float64(o.Waited.Seconds()))
	}
	if o.Token != 0 {
		attrs = append(attrs, keyToken.Int64(o.Token))
	}
	a.end(o.Outcome, o.Err, attrs)
}

// Releasing is one release under way. Its zero value records nothing.
type Releasing struct{ operation }

// StillHeld is given to Releasing.End in place of a duration when the release
// was not the hold's last: it took one nesting back.
const StillHeld time.Duration = -1

// Release starts the span holdfast.lock.release as a child of the span in ctx.
// The ctx it returns carries the span; the Releasing must be ended, once.
func (t *Telemetry) Release(ctx context.Context, kind, name string) (context.Context, Releasing) {
	if t == nil {
		return ctx, Releasing{}
	}
	op := t.begin(t.partOf(ctx), spanRelease, kind, name)
	return op.ctx, Releasing{op}
}

// End ends the span. held is how long the hold lasted, from grant to release or
// loss, and is recorded as holdfast.hold.duration unless it is StillHeld. err is
// what the caller is given; it is used for failures only.
func (r Releasing) End(outcome Outcome, held time.Duration, err error) {
	if r.t == nil {
		return
	}
	var attrs []attribute.KeyValue
	if held >= 0 {
		r.t.metrics.held(r.ctx, r.kind, outcome, held, err)
		if r.recording() {
			attrs = append(make([]attribute.KeyValue, 0, 2), keyHeld.Float64(held.Seconds()))
		}
	}
	r.end(outcome, err, attrs)
}

// operation is what both have in common. It keeps its ctx, against the usual
// advice, because a measurement finds its exemplar, the span, only there; no
// operation outlives the call that it describes.
type operation struct {
	t    *Telemetry
	ctx  context.Context
	span trace.Span // nil without a TracerProvider
	kind string
}

// begin leaves ctx alone without a tracer: a no-op span in it would hide the
// caller's own span from whatever runs below.
func (t *Telemetry) begin(ctx context.Context, span, kind, name string, more ...trace.SpanStartOption) (op operation) {
	op = operation{t: t, ctx: ctx, kind: kind}
	if t.tracer != nil {
		defer survive()
		options := t.subjects.get(kind, name).start
		op.ctx, op.span = t.tracer.Start(ctx, span, append(options, more...)...)
	}
	return op
}

func (op operation) recording() (yes bool) {
	defer survive()
	return op.span != nil && op.span.IsRecording()
}

// end sets all attributes at once, since the SDK makes room anew each time. It
// leaves the status of everything but a failure unset, as the conventions ask; the
// outcome says what happened.
func (op operation) end(outcome Outcome, err error, attrs []attribute.KeyValue) {
	if op.span == nil {
		return
	}
	defer survive()
	if op.span.IsRecording() {
		attrs = append(attrs, keyOutcome.String(outcome.String()))
		if outcome.failure() {
			attrs = append(attrs, keyErrorType.String(errorType(err)))
			op.span.SetStatus(codes.Error, message(err))
		}
		op.span.SetAttributes(attrs...)
	}
	op.span.End()
}

// survive has what a provider's panic would end go on without what the provider was
// to record: a lock that was granted must be returned to its caller, and a goroutine
// of ours has nobody above it. It must be deferred.
func survive() { _ = recover() }

func message(err error) string {
	if err == nil {
		return ""
	}
	return printable(err.Error())
}

// printable makes valid UTF-8 of the bytes that a lock may be named by: OTLP
// refuses a whole export for one string that is not.
func printable(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
