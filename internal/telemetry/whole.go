// The acquisition of several locks as one.

package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Whole is the acquisition of several locks as one, under way. It belongs to no Client, so it
// uses the Telemetry of the first part that has one. Its span begins together with the span of
// that part, with the time at which the Whole began, and is the parent of the spans of all
// parts. The parts must be acquired one after another.
type Whole struct {
	kind, name string
	ctx        context.Context // the caller's
	start      time.Time
	told       Acquisition // zero until a part with a Telemetry has begun
}

// wholeKey is the context key of the Whole that an operation is a part of.
type wholeKey struct{}

// Together begins a Whole. The ctx that it returns is for acquiring the parts, and for
// releasing them where that is part of the acquisition. The caller must end the Whole, once.
func Together(ctx context.Context, kind, name string) (context.Context, *Whole) {
	w := &Whole{kind: kind, name: name, ctx: ctx, start: time.Now()}
	return context.WithValue(ctx, wholeKey{}, w), w
}

// End ends the span and records the duration, both with the values of o.
func (w *Whole) End(o Acquired) { w.told.End(o) }

// Telemetry returns the Telemetry that the Whole uses, nil if no part has one.
func (w *Whole) Telemetry() *Telemetry { return w.told.t }

// partOf returns ctx with the span of the Whole that it belongs to, if any, as the parent of
// spans that begin with it.
func (t *Telemetry) partOf(ctx context.Context) context.Context {
	w, ok := ctx.Value(wholeKey{}).(*Whole)
	if !ok {
		return ctx
	}
	if w.told.t == nil {
		op := t.begin(w.ctx, spanAcquire, Kind{Name: w.kind}, w.name, trace.WithTimestamp(w.start))
		w.told = Acquisition{operation: op, start: w.start}
	}
	if w.told.span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, w.told.span)
}
