// What the log says of renewals: that they begin to fail, get through again, or come late.

package engine

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// logged returns the lines that an Engine logs in a scene.
func logged(t *testing.T, scene func(e *Engine, s *redistest.MiniServer)) (lines []string) {
	t.Helper()
	redistest.Bubble(t, func(t *testing.T) {
		var said strings.Builder
		server := redistest.Mini(t)
		e, err := New(server.Client(), nil, slog.New(slog.NewTextHandler(&said, nil)))
		if err != nil {
			t.Fatal(err)
		}
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
