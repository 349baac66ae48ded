// This scene is about the spans that a tracer gets; its tracer only records them in memory.

package scenes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/holdfast-go/holdfast"
)

func spans(ctx context.Context, s *stage) error {
	s.note("A program traces a request; Holdfast adds a span for each Lock and each Release,")
	s.note("below the program's own.")
	name := s.name("orders:42")
	seen := new(recorder)
	client := s.client(s.Redis, holdfast.WithTracerProvider(seen))
	defer client.Close()
	tracer := seen.Tracer("the program")

	ctx, request := tracer.Start(ctx, "POST /orders/42")
	err := holdfast.Do(ctx, client.Mutex(name), func(ctx context.Context) error {
		ctx, charge := tracer.Start(ctx, "charge")
		defer charge.End()
		return holdfast.Do(ctx, client.Mutex(name), func(context.Context) error { return nil })
	})
	request.End()
	if err != nil {
		return err
	}

	root := request.(*span)
	for line := range strings.Lines(root.tree("")) {
		s.note("%s", strings.TrimSuffix(line, "\n"))
	}
	s.check("the request has a lock, the work and a release below it",
		slices.Equal(root.below(), []string{"holdfast.lock.acquire", "charge", "holdfast.lock.release"}))
	charge := root.children[1]
	s.check("the work has a lock and a release of its own",
		slices.Equal(charge.below(), []string{"holdfast.lock.acquire", "holdfast.lock.release"}))
	outer, inner := root.children[0], charge.children[0]
	s.check("the inner lock is marked as re-entered, with the same token",
		inner.attributes["holdfast.reentrant"].AsBool() && !outer.attributes["holdfast.reentrant"].AsBool() &&
			inner.attributes["holdfast.token"] == outer.attributes["holdfast.token"])
	return nil
}

// recorder is a TracerProvider that keeps spans in memory. A real program passes the provider
// of the OpenTelemetry SDK.
type recorder struct {
	noop.TracerProvider
	mu sync.Mutex // guards all spans
}

func (r *recorder) Tracer(string, ...trace.TracerOption) trace.Tracer {
	return tracer{recorder: r}
}

type tracer struct {
	noop.Tracer
	recorder *recorder
}

func (t tracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	started := &span{name: name, recorder: t.recorder, attributes: make(map[attribute.Key]attribute.Value)}
	config := trace.NewSpanStartConfig(options...)
	started.SetAttributes(config.Attributes()...)
	if parent, ok := trace.SpanFromContext(ctx).(*span); ok {
		t.recorder.mu.Lock()
		parent.children = append(parent.children, started)
		t.recorder.mu.Unlock()
	}
	return trace.ContextWithSpan(ctx, started), started
}

type span struct {
	noop.Span
	name       string
	recorder   *recorder
	attributes map[attribute.Key]attribute.Value
	children   []*span
}

func (s *span) IsRecording() bool { return true }

func (s *span) SetAttributes(attributes ...attribute.KeyValue) {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	for _, a := range attributes {
		s.attributes[a.Key] = a.Value
	}
}

// below returns the names of the span's children.
func (s *span) below() []string {
	var names []string
	for _, child := range s.children {
		names = append(names, child.name)
	}
	return names
}

// tree draws the span and its descendants.
func (s *span) tree(indent string) string {
	var b strings.Builder
	b.WriteString(indent + s.name)
	for _, key := range []attribute.Key{"holdfast.name", "holdfast.outcome", "holdfast.reentrant", "holdfast.token"} {
		if value, ok := s.attributes[key]; ok {
			fmt.Fprintf(&b, "  %s=%s", strings.TrimPrefix(string(key), "holdfast."), value.String())
		}
	}
	b.WriteString("\n")
	for _, child := range s.children {
		b.WriteString(child.tree(indent + "  "))
	}
	return b.String()
}
