// What the log says of renewals, how slow handlers lose events but never counts, and what the documents say of times.

package engine

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// logged returns the lines that an Engine logs in a scene.
func logged(t *testing.T, scene func(e *Engine, s *redistest.MiniServer)) (lines []string) {
	t.Helper()
	redistest.Bubble(t, func(t *testing.T) {
		var said strings.Builder
		server := redistest.Mini(t)
		e, err := New(server.Client(), nil, slog.New(slog.NewTextHandler(&said, nil)))
		redistest.Must(t, err)
		scene(e, server)
		e.Close()
		lines = slices.Collect(strings.Lines(said.String()))
	})
	return lines
}

// Each outage of a server is logged, and its end, unless the server comes and goes.
func TestTheLogSaysEachOutage(t *testing.T) {
	lines := logged(t, func(e *Engine, _ *redistest.MiniServer) {
		s := &sender{e: e}
		for _, step := range []struct {
			after  time.Duration
			failed bool
		}{
			{0, false}, {time.Second, true}, {time.Second, true}, {2 * time.Second, false}, // logged
			{time.Second, true}, {time.Second, false}, // too soon after the first
			{outageQuiet, true}, {time.Minute, false}, // logged
		} {
			time.Sleep(step.after)
			var err error
			if step.failed {
				err = errors.New("refused")
			}
			s.tried("a:1", err)
		}
	})
	want := []string{"renewals fail", "after=3s", "renewals fail", "after=1m0s"}
	if len(lines) != len(want) {
		t.Fatalf("the log says %q, want lines with %q", lines, want)
	}
	for i, line := range lines {
		if !strings.Contains(line, want[i]) {
			t.Errorf("the log says %q, want %q", line, want[i])
		}
	}
}

// What a Client says of itself may be refused to it: that is no word about its renewals.
func TestARefusedIdentityIsNoOutage(t *testing.T) {
	lines := logged(t, func(e *Engine, s *redistest.MiniServer) {
		e.SayWho("pod")
		s.FailInside(1)
		e.Present()
		time.Sleep(time.Minute)
	})
	if len(lines) != 1 || !strings.Contains(lines[0], "identity") || strings.Contains(lines[0], "renewals") {
		t.Errorf("the log says %q", lines)
	}
}

// That renewals come late is said before a lease is lost, and not again at once.
func TestTheLogSaysThatRenewalsComeLate(t *testing.T) {
	lines := logged(t, func(e *Engine, _ *redistest.MiniServer) {
		s := &sender{e: e}
		task := &fakeTask{until: time.Now().Add(time.Minute), part: Part{Length: time.Minute}}
		s.behind("a:1", task, 10) // there is time enough
		task.until = time.Now().Add(29 * time.Second)
		s.behind("a:1", task, 0) // nothing waits
		s.behind("a:1", task, 10)
		s.behind("a:1", task, 20)
	})
	if len(lines) != 1 || !strings.Contains(lines[0], "renewals come late") || !strings.Contains(lines[0], "waiting=10") {
		t.Errorf("the log says %q", lines)
	}
}

// blocked puts a call into o that goes on until proceed.
func blocked(o *outlet) (proceed func()) {
	begun, block := make(chan struct{}), make(chan struct{})
	o.put(func() { close(begun); <-block })
	<-begun
	return func() { close(block) }
}

// What is counted is never dropped.
func TestWhatComesOnTopOfAFullOutletIsDroppedAndSaid(t *testing.T) {
	dropped, called, counted := 0, 0, int64(0)
	o := &outlet{lost: func(n int) { dropped += n }, add: func(_ count, n int64) { counted += n }}
	proceed := blocked(o)
	for range outletRoom + 5 {
		o.put(func() { called++ })
		o.count(count{counter: countLost, kind: telemetry.Kind{Name: "mutex"}}, 1)
	}
	proceed()
	o.close(time.Now().Add(time.Minute))
	if called != outletRoom || dropped != 5 {
		t.Errorf("%d were called, want %d; %d are said to be dropped, want 5", called, outletRoom, dropped)
	}
	redistest.Equal(t, counted, outletRoom+5, "%d were counted, want %d", outletRoom+5)
}

func TestNothingIsCalledOnceCloseWaitsNoLonger(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		var o outlet
		proceed := blocked(&o)
		o.put(func() { t.Error("called after Close") })
		o.close(time.Now())
		o.put(func() { t.Error("taken after Close") })
		proceed()
		synctest.Wait() // the outlet's goroutine has ended
	})
}

func TestTheDocumentsSayHowLongThingsTake(t *testing.T) {
	doctest.Says(t, Grace, "docs/guarantees.md", "`Release` goes on when its context is cancelled, for {}")
	doctest.Says(t, Grace, "docs/connecting.md", "tries for up to {}")
	doctest.Says(t, Grace, "lease/lease.go", "goes on for at most {}")
	doctest.Says(t, finishLimit, "docs/architecture.md", "It goes on for {} with its caller")
	doctest.Says(t, finishLimit, "semaphore/semaphore.go", "answer within {}")
	doctest.Says(t, finishLimit, "latch/latch.go", "answer within {}")
	doctest.Says(t, closeGrace, "docs/architecture.md", "for at most {}")
	doctest.Says(t, closeGrace, "docs/guarantees.md", "within {} if calls were")
	doctest.Says(t, closeGrace, "client.go", "for at most {}")
	doctest.Says(t, closeGrace+tellingGrace, "docs/guarantees.md", "within {} if a log handler")
	doctest.Says(t, closeGrace+tellingGrace, "client.go", "waits for that function for at most {}")
}
