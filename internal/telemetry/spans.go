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
	eventLost   = "holdfast.lock.lost"
)

// Attributes of spans alone: each has a value of its own per operation.
const (
	keyName     = attribute.Key("holdfast.name")
	keyAttempts = attribute.Key("holdfast.attempts")
	keyWaited   = attribute.Key("holdfast.wait.duration")
	keyHeld     = attribute.Key("holdfast.hold.duration")
	keyToken    = attribute.Key("holdfast.token")
	keyCause    = attribute.Key("holdfast.cause")
)

// Acquisition is one acquisition under way. Its zero value records nothing.
type Acquisition struct {
	operation
	start time.Time
}

// Acquired is how an acquisition ended.
type Acquired struct {
	Outcome   Outcome
	Attempts  int           // scripts that asked for the lock, including those sent again
	Waited    time.Duration // the time spent waiting behind other holders, or ToldByParts
	Reentrant bool          // the caller held it already
	Token     int64         // the fencing token of the grant; 0 if there is none
	Err       error         // the error that the caller gets; used for failures only
}

// ToldByParts replaces the time waited where each part of a Whole reports its own.
const ToldByParts time.Duration = -1

// Acquire starts the span holdfast.lock.acquire as a child of the span in ctx, and the clock of
// holdfast.acquire.duration. The ctx that it returns carries the span. The caller must end the
// Acquisition, once. kind comes from a short list that the caller knows ("mutex",
// "rwlock.read"); name may be any bytes. Acquire calls the user's function for the group of name.
func (t *Telemetry) Acquire(ctx context.Context, kind, name string) (context.Context, Acquisition) {
	if t == nil {
		return ctx, Acquisition{}
	}
	op := t.begin(t.partOf(ctx), spanAcquire, t.Kind(kind, name), name)
	return op.ctx, Acquisition{operation: op, start: time.Now()}
}

// Kind returns what the acquisition is of, for what else is measured of it and of what it is granted.
func (a Acquisition) Kind() Kind { return a.kind }

// Elapsed returns how long the acquisition has been under way; 0 if nothing is recorded.
func (a Acquisition) Elapsed() time.Duration {
	if a.t == nil {
		return 0
	}
	return time.Since(a.start)
}

// End ends the span and records the duration, both with the values of o.
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

// StillHeld replaces the duration in Releasing.End if the release was not the hold's last: it
// ended one nested lease.
const StillHeld time.Duration = -1

// Release starts the span holdfast.lock.release as a child of the span in ctx. The ctx that it
// returns carries the span. The caller must end the Releasing, once.
func (t *Telemetry) Release(ctx context.Context, kind Kind, name string) (context.Context, Releasing) {
	if t == nil {
		return ctx, Releasing{}
	}
	op := t.begin(t.partOf(ctx), spanRelease, kind, name)
	return op.ctx, Releasing{op}
}

// Loss describes how a hold ended without being released.
type Loss struct {
	Reason string        // as for Telemetry.Lost; "" for a fixed lease that ended as agreed
	At     time.Time     // when it was lost
	Held   time.Duration // how long it had been held
	Why    string        // for people
}

// Lost adds to the span of a release an event that says when and why the hold had been lost
// before. It does nothing if l is nil.
func (r Releasing) Lost(l *Loss) {
	if l == nil || !r.recording() {
		return
	}
	attrs := []attribute.KeyValue{keyHeld.Float64(l.Held.Seconds()), keyCause.String(printable(l.Why))}
	if l.Reason != "" {
		attrs = append(attrs, keyReason.String(l.Reason))
	}
	r.span.AddEvent(eventLost, trace.WithTimestamp(l.At), trace.WithAttributes(attrs...))
}

// End ends the span. held is how long the hold lasted, from grant to release or loss. It is
// recorded as holdfast.hold.duration, unless it is StillHeld. err is the error that the caller
// gets; it is used for failures only.
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

// operation is what an Acquisition and a Releasing have in common. It stores its ctx, against
// the usual advice, because a measurement finds its exemplar, the span, only there. No
// operation outlives the call that it describes.
type operation struct {
	t    *Telemetry
	ctx  context.Context
	span trace.Span // nil without a TracerProvider
	kind Kind
}

// begin starts an operation. Without a tracer it leaves ctx alone: a no-op span in it would
// hide the caller's own span from everything below.
func (t *Telemetry) begin(ctx context.Context, span string, kind Kind, name string, more ...trace.SpanStartOption) (op operation) {
	op = operation{t: t, ctx: ctx, kind: kind}
	if t.tracer != nil {
		defer survive()
		options := t.subjects.get(kind.Name, name, t.server).start
		op.ctx, op.span = t.tracer.Start(ctx, span, append(options, more...)...)
	}
	return op
}

func (op operation) recording() (yes bool) {
	defer survive()
	return op.span != nil && op.span.IsRecording()
}

// end sets all attributes at once, because the SDK allocates anew each time. It leaves the
// status unset for everything but a failure, as the conventions ask; the outcome says what
// happened.
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

// survive recovers from a panic of a provider. The caller of the provider then goes on, without
// the value that the provider was to record: a lock that was granted must be returned to its
// caller, and no code above a goroutine of ours would recover. survive must be deferred.
func survive() { _ = recover() }

func message(err error) string {
	if err == nil {
		return ""
	}
	return printable(err.Error())
}

// printable makes the bytes of a lock's name valid UTF-8: OTLP refuses a whole export for one
// string that is not.
func printable(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
