// This file has the targets of Holdfast, and checks whether Holdfast reaches them.

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/bench/internal/ceiling"
	"github.com/holdfast-go/holdfast/bench/internal/crew"
	"github.com/holdfast-go/holdfast/bench/internal/peer"
	"github.com/holdfast-go/holdfast/bench/internal/work"
)

// Target is a row of the table: some work, and the bound for it.
type Target struct {
	Work   string
	AtMost string // in words; the checks have the same bound in figures
	Checks func(r *Results) []Check
}

// Check compares one figure with its bound.
type Check struct {
	Text  string // the figure
	Met   bool
	Known bool // whether the figure was measured
}

// These are the settings of each peer. Only the best setting of a peer counts.
var (
	redsyncs     = []string{peer.Redsync, peer.RedsyncTuned}
	redislocks   = []string{peer.Redislock, peer.RedislockLinear, peer.RedislockExponential}
	rueidislocks = []string{peer.Rueidislock, peer.RueidislockTuned}
	peers        = slices.Concat(redsyncs, redislocks, rueidislocks)
)

// Targets returns all rows.
func Targets() []Target {
	return slices.Concat(pairTargets(), lockTargets(), otherTargets(), costTargets())
}

func pairTargets() []Target {
	all := []Target{{
		"uncontended pair, 1 goroutine: p50", "≤ 1.05x redislock's, under rueidislock's",
		func(r *Results) []Check {
			return []Check{
				r.lessThan(work.Pairs(1), crew.P50, 1.05, redislocks...),
				r.lessThan(work.Pairs(1), crew.P50, 1, rueidislocks...),
			}
		},
	}}
	for _, row := range []struct {
		goroutines int
		factor     float64
	}{{16, 1.05}, {256, 1.2}, {2048, 1.5}} {
		all = append(all, Target{
			fmt.Sprintf("uncontended pairs/s, %d goroutines", row.goroutines),
			fmt.Sprintf("%gx the best peer", row.factor),
			func(r *Results) []Check {
				return []Check{r.times(work.Pairs(row.goroutines), row.factor, peer.Holdfast, peers...)}
			},
		})
	}
	return append(all,
		Target{"the same, 256 goroutines, of the raw ceiling", "80 % of the same scripts in raw pipelines",
			func(r *Results) []Check {
				return []Check{r.times(work.Pairs(256), 0.8, peer.Holdfast, ceiling.Name)}
			}},
		Target{"the same, 16 and 256, beside Redisson", "2x its pairs/s",
			func(r *Results) []Check {
				return []Check{
					r.times(work.Pairs(16), 2, peer.Holdfast, crew.Redisson),
					r.times(work.Pairs(256), 2, peer.Holdfast, crew.Redisson),
				}
			}},
	)
}

func lockTargets() []Target {
	var all []Target
	for _, goroutines := range []int{16, 128, 1000} {
		workload := work.Contended(1, goroutines)
		all = append(all, Target{
			fmt.Sprintf("one lock, one process, %d goroutines: grants/s", goroutines),
			"20x the best peer, Jain ≥ 0.95, nobody starved",
			func(r *Results) []Check {
				return []Check{
					r.times(workload, 20, peer.Holdfast, peers...),
					r.atLeast(workload, peer.Holdfast, crew.Jain, 0.95, "Jain %.2f"),
					r.atMost(workload, peer.Holdfast, crew.Starved, 0, "%.0f starved"),
				}
			},
		})
	}
	crowd := work.Contended(8, 125)
	return append(all,
		Target{"one lock, 8 processes x 125, cohort on: grants/s",
			"30x rueidislock, 12x the best peer, each process within 2x of its share",
			func(r *Results) []Check {
				return []Check{
					r.times(crowd, 30, peer.Holdfast, rueidislocks...),
					r.times(crowd, 12, peer.Holdfast, peers...),
					r.atLeast(crowd, peer.Holdfast, crew.LeastShare, 0.5, "shares from %.2f"),
					r.atMost(crowd, peer.Holdfast, crew.LargestShare, 2, "to %.2f"),
				}
			}},
		Target{"one lock, 8 processes x 125, cohort off: grants/s",
			"2.5x rueidislock, Jain ≥ 0.95, ≤ 2.5 commands per grant",
			func(r *Results) []Check {
				return []Check{
					r.times(crowd, 2.5, peer.HoldfastWithoutCohort, rueidislocks...),
					r.atLeast(crowd, peer.HoldfastWithoutCohort, crew.Jain, 0.95, "Jain %.2f"),
					r.atMost(crowd, peer.HoldfastWithoutCohort, crew.CommandsPerOp, 2.5, "%.2f commands"),
				}
			}},
		Target{"one holder, one waiter in another process: hand-off p50", "≤ 0.7x rueidislock's",
			func(r *Results) []Check {
				bare, ok := r.Ratio(work.HandOff, crew.P50, peer.Holdfast, work.Message)
				return []Check{
					r.lessThan(work.HandOff, crew.P50, 0.7, rueidislocks...),
					{fmt.Sprintf("%.2fx a message alone", bare.Median), true, ok},
				}
			}},
	)
}

func otherTargets() []Target {
	return []Target{
		{"fair lock, 1 000 waiters in 8 processes: grants/s", "10x Redisson's fair lock",
			func(r *Results) []Check {
				return []Check{r.times(work.Fair(1000), 10, peer.Holdfast, crew.Redisson)}
			}},
		{"fair lock: server time per grant, 10 to 5 000 waiters", "flat, 3x at the most", fairIsFlat},
		{"semaphore of 10, 1 000 waiters: grants/s", "ahead of Redisson's",
			func(r *Results) []Check {
				return []Check{r.times(work.Semaphore, 1, peer.Holdfast, crew.Redisson)}
			}},
		{"read/write 95:5, 200 goroutines: grants/s", "ahead of Redisson's",
			func(r *Results) []Check {
				return []Check{r.times(work.ReadWrite, 1, peer.Holdfast, crew.Redisson)}
			}},
		{"latch, 1 000 waiters: until all are awake, p50", "ahead of Redisson's",
			func(r *Results) []Check {
				return []Check{r.lessThan(work.Latch, crew.P50, 1, crew.Redisson)}
			}},
		{"16 stripes against one lock, 1 ms held", "12x; skewed keys beside it",
			func(r *Results) []Check {
				skewed, ok := r.Ratio(work.Stripes, crew.PerSecond, work.SkewedStripes, work.OneStripe)
				return []Check{
					r.times(work.Stripes, 12, work.ManyStripes, work.OneStripe),
					{fmt.Sprintf("%.1fx with skewed keys", skewed.Median), true, ok},
				}
			}},
	}
}

// fairIsFlat compares the server's time per grant of the largest crowd with that of the smallest.
// It compares medians, because the crowds are different workloads.
func fairIsFlat(r *Results) []Check {
	var texts []string
	least, most := 0.0, 0.0
	for _, waiters := range work.FairOf {
		s, ok := r.Of(work.Fair(waiters), peer.Holdfast, crew.ServerPerOp)
		if !ok {
			return []Check{{}}
		}
		if least == 0 {
			least = s.Median
		}
		most = max(most, s.Median)
		texts = append(texts, fmt.Sprintf("%.0f", s.Median))
	}
	text := fmt.Sprintf("%.1fx (%s µs)", most/least, strings.Join(texts, ", "))
	return []Check{{text, most <= 3*least, true}}
}

func costTargets() []Target {
	return []Target{
		{"100 000 held and renewed locks",
			"0 goroutines and ≤ 400 B of heap per lease; client CPU ≤ 2 µs a renewal and ≤ 0.05x of redislock " +
				"that keeps the same locks; p99 of another client's PING ≤ idle + 0.5 ms",
			func(r *Results) []Check {
				busy, ok := r.Ratio(work.Renewal, crew.ClientPerOp, peer.Holdfast, work.Refreshes)
				return []Check{
					r.atMost(work.Renewal, peer.Holdfast, work.GoroutinesPerLock, 0.001, "%.3f goroutines"),
					r.atMost(work.Renewal, peer.Holdfast, work.HeapPerLock, 400, "%.0f B"),
					r.atMost(work.Renewal, peer.Holdfast, crew.ClientPerOp, 2, "%.1f µs"),
					r.lessThan(work.Renewal, crew.ClientPerOp, 0.05, peer.Redislock),
					{ratio(busy, work.Refreshes), true, ok}, // the goal was once 0.1x of this
					r.pingDelay(0.5),
				}
			}},
		{"1 000 idle waiters on one held lock", "≤ 1 command/s per process; CPU beside a 100 ms poller's",
			func(r *Results) []Check {
				commands, ok := r.Of(work.Idle, peer.Holdfast, crew.CommandsPerSecond)
				each := commands.Median / work.IdleProcesses
				cpu, known := r.Ratio(work.Idle, crew.ClientPerSecond, peer.Holdfast, peer.Redislock)
				return []Check{
					{fmt.Sprintf("%.2f commands/s", each), each <= 1, ok},
					{fmt.Sprintf("%.3fx the poller's CPU", cpu.Median), true, known},
				}
			}},
		{"OpenTelemetry: uncontended pair, 1 goroutine, p50", "on, with a no-op exporter: ≤ 1.1x off",
			func(r *Results) []Check {
				s, ok := r.Ratio(work.Telemetry, crew.P50, work.TelemetrySDK, work.TelemetryOff)
				batched, _ := r.Ratio(work.Telemetry, crew.P50, work.TelemetryBatch, work.TelemetryOff)
				empty, measured := r.Ratio(work.Telemetry, crew.P50, work.TelemetryEmpty, work.TelemetryOff)
				off, known := r.Of(work.Telemetry, work.TelemetryOff, crew.AllocsPerOp)
				return []Check{
					{ratio(s, work.TelemetryOff), s.Median <= 1.1, ok},
					{fmt.Sprintf("by the SDK's batch processor %.2fx, of which two empty spans alone %.2fx", batched.Median, empty.Median), true, measured},
					{fmt.Sprintf("%.1f allocations off", off.Median), true, known},
				}
			}},
	}
}

// times checks that the rate of one is at least factor times the best rate of the others.
func (r *Results) times(workload string, factor float64, one string, others ...string) Check {
	best := r.Best(workload, crew.PerSecond, false, others...)
	s, ok := r.Ratio(workload, crew.PerSecond, one, best)
	return Check{ratio(s, best), s.Median >= factor, ok}
}

// lessThan checks that a figure of Holdfast is at most factor times the best figure of the others.
// It is for a figure where less is better.
func (r *Results) lessThan(workload, figure string, factor float64, others ...string) Check {
	best := r.Best(workload, figure, true, others...)
	s, ok := r.Ratio(workload, figure, peer.Holdfast, best)
	return Check{ratio(s, best), s.Median <= factor, ok}
}

func (r *Results) atLeast(workload, contender, figure string, bound float64, format string) Check {
	s, ok := r.Of(workload, contender, figure)
	return Check{fmt.Sprintf(format, s.Median), s.Median >= bound, ok}
}

func (r *Results) atMost(workload, contender, figure string, bound float64, format string) Check {
	s, ok := r.Of(workload, contender, figure)
	return Check{fmt.Sprintf(format, s.Median), s.Median <= bound, ok}
}

// pingDelay checks that another client's PING takes at most that many ms longer than on an idle
// server, at p99.
func (r *Results) pingDelay(most float64) Check {
	loaded, ok1 := r.Of(work.Renewal, peer.Holdfast, crew.P99)
	idle, ok2 := r.Of(work.Renewal, work.Nothing, crew.P99)
	delay := (loaded.Median - idle.Median) / 1000
	return Check{fmt.Sprintf("PING p99 %+.2f ms", delay), delay <= most, ok1 && ok2}
}

func ratio(s Spread, other string) string {
	return fmt.Sprintf("%s (%s to %s) %s", factor(s.Median), number(s.Min), number(s.Max), other)
}

func factor(v float64) string { return number(v) + "x" }
