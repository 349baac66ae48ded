package crew

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/bench/internal/peer"
	"github.com/holdfast-go/holdfast/bench/internal/work"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) {
	Child()
	redistest.Main(m)
}

func TestTheFiguresOfARun(t *testing.T) {
	parts := []measure.Part{
		{Seconds: 2, Done: []int64{60, 60}, Usage: measure.Usage{CPU: time.Millisecond, Allocs: 400}, Figures: map[string]float64{"own": 1}},
		{Seconds: 2, Done: []int64{40, 40}, Usage: measure.Usage{CPU: time.Millisecond, Allocs: 600}, Figures: map[string]float64{"own": 2}},
	}
	served := measure.Served{CPU: 4 * time.Millisecond, Commands: 300}
	f, err := figures(work.Workload{}, parts, served)
	redistest.Must(t, err)
	for name, want := range map[string]float64{
		PerSecond: 100, CommandsPerOp: 1.5, ClientPerOp: 10, ServerPerOp: 20, AllocsPerOp: 5,
		CommandsPerSecond: 150, LeastShare: 0.8, LargestShare: 1.2, Starved: 0, "own": 3,
	} {
		if f[name] != want {
			t.Errorf("%s is %v, want %v", name, f[name], want)
		}
	}
}

func TestAProcessThatDoesNothingHangs(t *testing.T) {
	parts := []measure.Part{{Seconds: 1, Done: []int64{0}}}
	if _, err := figures(work.Workload{}, parts, measure.Served{}); err == nil || !strings.HasPrefix(err.Error(), Hung) {
		t.Errorf("nothing done: %v", err)
	}
	if _, err := figures(work.Workload{Idle: true}, parts, measure.Served{}); err != nil {
		t.Errorf("nothing to do: %v", err)
	}
	parts[0].Failed = "broken"
	if _, err := figures(work.Workload{}, parts, measure.Served{}); err == nil || err.Error() != "broken" {
		t.Errorf("a process that failed: %v", err)
	}
}

// TestARunInProcesses measures for a moment: one peer, a crowd in several processes, and two
// processes that talk to each other.
func TestARunInProcesses(t *testing.T) {
	redistest.Needs(t)
	server, err := measure.StartServer(t.Context())
	redistest.Must(t, err)
	defer server.Stop()
	for _, run := range []struct{ workload, contender, figure string }{
		{work.Pairs(1), peer.Holdfast, P50},
		{work.Pairs(16), peer.RueidislockTuned, PerSecond},
		{work.Pairs(16), peer.RedsyncTuned, PerSecond},
		{work.Fair(10), peer.Holdfast, Jain},
		{work.HandOff, peer.RedislockLinear, P50},
		{work.Telemetry, work.TelemetrySDK, PerSecond},
		{work.Once, peer.Holdfast, work.RunsPerKey},
		{work.Once, peer.RedsyncOnceTuned, work.RunsPerKey},
	} {
		t.Run(run.workload+" "+run.contender, func(t *testing.T) {
			w, err := work.Find(run.workload)
			redistest.Must(t, err)
			r := Run{Workload: w, Contender: run.contender, Quick: true, Warm: 50 * time.Millisecond, Window: 500 * time.Millisecond}
			f, err := Measure(context.Background(), server, r)
			if err != nil && strings.HasPrefix(err.Error(), Hung) { // on a machine that does much else
				r.Window = 20 * time.Second
				f, err = Measure(context.Background(), server, r)
			}
			redistest.Must(t, err)
			if f[run.figure] <= 0 || f[CommandsPerOp] < 1 {
				t.Errorf("figures: %v", f)
			}
		})
	}
	w, err := work.Find(work.Pairs(1))
	redistest.Must(t, err)
	_, err = Measure(t.Context(), server, Run{Workload: w, Contender: "nobody"})
	if err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("a contender that there is not: %v", err)
	}
}

// TestElections measures until each contender has had a few leaders resign, and a few killed.
func TestElections(t *testing.T) {
	redistest.LongRun(t)
	redistest.Needs(t)
	server, err := measure.StartServer(t.Context())
	redistest.Must(t, err)
	defer server.Stop()
	for name, window := range map[string]time.Duration{work.ElectionResigned: 2 * time.Second, work.ElectionKilled: 3 * peer.Term} {
		w, err := work.Find(name)
		redistest.Must(t, err)
		for _, contender := range w.Contenders {
			f, err := Measure(t.Context(), server, Run{Workload: w, Contender: contender, Warm: 50 * time.Millisecond, Window: window})
			if _, asks := f[CommandsPerOp]; err != nil || f[Samples] == 0 || f[P50] <= 0 || asks != (contender != peer.Etcd) {
				t.Errorf("%s of %s: %v, %v", name, contender, f, err)
			}
		}
	}
}

func TestARunOfScaleEndsWithFiguresOrSaysWhyNot(t *testing.T) {
	redistest.Needs(t)
	s, err := BuildScale(t.Context())
	redistest.Must(t, err)
	defer s.Close()
	f, err := s.Measure(t.Context(), "", []string{"gather", "-clients", "16", "-do", "waiting", "-for", "2s"})
	redistest.Must(t, err)
	// A Client that waits has connections, and polls now and then.
	if f[ConnectionsPerClient] < 1 || f[CommandsPerSecond] <= 0 || f[Lost] != 0 {
		t.Errorf("%v", f)
	}
	f, err = s.Measure(t.Context(), "", []string{"waiters", "-waiters", "40", "-for", "1s"})
	if err != nil || f[Seconds] <= 0 || f[Lost] != 0 {
		t.Errorf("%v, %v", f, err)
	}
	if _, err := s.Measure(t.Context(), "", []string{"nothing"}); err == nil || !strings.Contains(err.Error(), "say which workload") {
		t.Errorf("a workload that there is not: %v", err)
	}
	if _, err := s.Measure(t.Context(), "/no/such/server", []string{"names"}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a server that there is not: %v", err)
	}
}
