// Several locks are acquired as one, and their spans belong to one whole.

package telemetry_test

import (
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/internal/telemetry"
)

func TestWholeIsTheParentOfItsParts(t *testing.T) {
	o := observe(t)
	outer, span := o.Acquire(t.Context(), kind, "the caller's")
	ctx, whole := telemetry.Together(outer, "multi", "a, b")
	var silent *telemetry.Telemetry // the Client of the first part has no telemetry
	_, none := silent.Acquire(ctx, kind, "a")
	none.End(telemetry.Acquired{})
	_, toNobody := telemetry.Together(t.Context(), "multi", "a, b")
	toNobody.End(telemetry.Acquired{Outcome: telemetry.OutcomeAcquired})
	if whole.Telemetry() != nil || toNobody.Telemetry() != nil {
		t.Error("told before a part with telemetry has begun")
	}
	_, part := o.Acquire(ctx, kind, "b")
	part.End(telemetry.Acquired{Outcome: telemetry.OutcomeBusy})
	_, back := o.Release(ctx, of, "a")
	back.End(telemetry.OutcomeReleased, 0, nil)
	whole.End(telemetry.Acquired{Outcome: telemetry.OutcomeBusy, Attempts: 1, Waited: telemetry.ToldByParts})
	span.End(telemetry.Acquired{Outcome: telemetry.OutcomeAcquired})
	if whole.Telemetry() == nil {
		t.Error("told to nobody")
	}

	ended := o.spans.Ended()
	if len(ended) != 4 {
		t.Fatalf("%d spans ended, want 4", len(ended))
	}
	all, caller := ended[2], ended[3]
	for _, one := range ended[:2] {
		if one.Parent().SpanID() != all.SpanContext().SpanID() {
			t.Errorf("%s %v is no child of the whole", one.Name(), attributes(one))
		}
	}
	if all.Parent().SpanID() != caller.SpanContext().SpanID() || caller.Parent().SpanID() != (trace.SpanID{}) {
		t.Error("the whole is no child of the caller's")
	}
	if all.StartTime().After(ended[0].StartTime()) {
		t.Error("the whole begins after a part")
	}
	has := attributes(all)
	if _, there := has["holdfast.wait.duration"]; there || has["holdfast.kind"] != "multi" || has["holdfast.outcome"] != "busy" {
		t.Errorf("attributes %v", has)
	}
}
