// The acquisition of several things as one.

package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Whole is the acquisition of several things as one, under way. It belongs to no
// Client, so it is told to that of the first part that tells anything: its span
// begins with that of the part, at the time when the whole began, and is the
// parent of all of them. The parts must be acquired one after another.
type Whole struct {
	kind, name string
	ctx        context.Context // of the caller
	start      time.Time
	told       Acquisition // zero until a part has begun
}

// wholeKey asks a context for the Whole of which an operation is a part.
type wholeKey struct{}

// Together begins a Whole. The ctx that it returns is for acquiring the parts, and
// for releasing them where that is part of it. It must be ended, once.
func Together(ctx context.Context, kind, name string) (context.Context, *Whole) {
	w := &Whole{kind: kind, name: name, ctx: ctx, start: time.Now()}
	return context.WithValue(ctx, wholeKey{}, w), w
}

// End ends the span and records the duration, both with what o says.
func (w *Whole) End(o Acquired) { w.told.End(o) }

// Telemetry returns what the Whole is told to, nil if no part tells anything.
func (w *Whole) Telemetry() *Telemetry { return w.told.t }

// partOf returns ctx with the span of the Whole that it belongs to, if any, as the
// parent of what begins with it.
func (t *Telemetry) partOf(ctx context.Context) context.Context {
	w, ok := ctx.Value(wholeKey{}).(*Whole)
	if !ok {
		return ctx
	}
	if w.told.t == nil {
		op := t.begin(w.ctx, spanAcquire, w.kind, w.name, trace.WithTimestamp(w.start))
		w.told = Acquisition{operation: op, start: w.start}
	}
	if w.told.span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, w.told.span)
}
