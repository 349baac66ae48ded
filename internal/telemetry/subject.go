// The start options of a span, kept for the names in use.

package telemetry

import (
	"hash/maphash"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// subject holds the start options of the spans of one lock. The slice start is full, so that
// append copies it.
type subject struct {
	kind, name string
	start      []trace.SpanStartOption
}

func newSubject(kind, name string, at server) *subject {
	attrs := append([]attribute.KeyValue{keyKind.String(kind), keyName.String(printable(name))}, at.of(kind)...)
	start := [...]trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(attrs...)}
	return &subject{kind, name, start[:]}
}

// subjects keeps the subjects that were used last: one for each hash of a name, so that any
// number of names takes no more room. It needs no lock.
type subjects struct {
	slots [256]atomic.Pointer[subject]
	seed  maphash.Seed
}

func (s *subjects) get(kind, name string, at server) *subject {
	slot := &s.slots[maphash.String(s.seed, name)%uint64(len(s.slots))]
	if known := slot.Load(); known != nil && known.name == name && known.kind == kind {
		return known
	}
	made := newSubject(kind, name, at)
	slot.Store(made)
	return made
}
