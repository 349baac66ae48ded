// This file has the targets of Holdfast.

package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/ceiling"
	"github.com/holdfast-go/holdfast/bench/internal/crew"
	"github.com/holdfast-go/holdfast/bench/internal/peer"
	"github.com/holdfast-go/holdfast/bench/internal/work"
)

// Target is a row of the table: some work, and the bound for it.
type Target struct {
	Work   string
	AtMost string // in words; the checks have the same bound in figures
	Beside string // the workload whose contenders may starve or bunch callers, "" if nobody waits or another row says it
	Checks func(r *Results) []Check
}

// These are the settings of each peer. Only the best setting of a peer counts.
var (
	redsyncs     = []string{peer.Redsync, peer.RedsyncTuned}
	redislocks   = []string{peer.Redislock, peer.RedislockLinear, peer.RedislockExponential}
	rueidislocks = []string{peer.Rueidislock, peer.RueidislockTuned}
	peers        = slices.Concat(redsyncs, redislocks, rueidislocks)
	locals       = []string{peer.RedislockLocal, peer.RueidislockLocal}
	onces        = []string{peer.RedsyncOnce, peer.RedsyncOnceTuned}
	everybody    = slices.Concat(peers, locals, []string{crew.Redisson})
)

// Targets returns all rows.
func Targets() []Target {
	return slices.Concat(pairTargets(), lockTargets(), otherTargets(), workTargets(), costTargets(), scaleTargets())
}

func pairTargets() []Target {
	all := []Target{{
		Work: "uncontended pair, 1 goroutine: p50", AtMost: "≤ redislock's, ≤ rueidislock's",
		Checks: func(r *Results) []Check {
			return []Check{
				r.lessThan(work.Pairs(1), crew.P50, 1, redislocks...),
				r.lessThan(work.Pairs(1), crew.P50, 1, rueidislocks...),
			}
		},
	}}
	for _, row := range []struct {
		goroutines   int
		factor, fair float64
	}{{16, 1.1, 1.1}, {256, 1.8, 1.8}, {2048, 2, 3}} {
		target := Target{
			Work:   fmt.Sprintf("uncontended pairs/s, %d goroutines", row.goroutines),
			AtMost: fmt.Sprintf("%gx the best peer", row.factor),
			Beside: work.Pairs(row.goroutines),
			Checks: func(r *Results) []Check {
				return r.times(work.Pairs(row.goroutines), row.factor, row.fair, peer.Holdfast, peers...)
			},
		}
		if row.fair > row.factor {
			target.AtMost += fmt.Sprintf(", %gx the best that starves nobody", row.fair)
		}
		all = append(all, target)
	}
	return append(all,
		Target{Work: "the same, 256 goroutines, of the raw ceiling", AtMost: "80 % of the scripts in raw pipelines",
			Checks: func(r *Results) []Check {
				one, ok := r.Ratio(work.Pairs(256), crew.PerSecond, peer.Holdfast, ceiling.Name)
				return []Check{
					r.times(work.Pairs(256), 0.8, 0.8, peer.Holdfast, ceiling.AsSent)[0],
					{ratio(one, ceiling.Name+" with a lock in each script"), one.atLeast(0.8), ok, one.Median},
				}
			}},
		Target{Work: "the same, 16 and 256, beside Redisson", AtMost: "2x its pairs/s",
			Checks: func(r *Results) []Check {
				return slices.Concat(r.times(work.Pairs(16), 2, 2, peer.Holdfast, crew.Redisson),
					r.times(work.Pairs(256), 2, 2, peer.Holdfast, crew.Redisson))
			}},
	)
}

func lockTargets() []Target {
	var all []Target
	for _, goroutines := range []int{16, 128, 1000} {
		workload := work.Contended(1, goroutines)
		all = append(all, Target{
			Work:   fmt.Sprintf("one lock, one process, %d goroutines: grants/s", goroutines),
			AtMost: "20x the best peer; Jain ≥ 0.95, nobody starved",
			Beside: workload,
			Checks: func(r *Results) []Check {
				return append(r.times(workload, 20, 20, peer.Holdfast, slices.Concat(peers, locals)...),
					r.atLeast(workload, peer.Holdfast, crew.Jain, 0.95, "Jain %.2f"),
					r.never(workload, peer.Holdfast, crew.Starved, 0, "%.0f starved"))
			},
		})
	}
	crowd := work.Contended(8, 125)
	return append(all,
		Target{Work: "one lock, 8 processes x 125, cohort on: grants/s",
			AtMost: "30x rueidislock, 12x the best peer; processes within 2x of their share",
			Checks: func(r *Results) []Check {
				rueidis := r.times(crowd, 30, 30, peer.Holdfast, rueidislocks...)[0]
				return append([]Check{rueidis}, append(
					r.times(crowd, 12, 12, peer.Holdfast, slices.Concat(peers, locals)...),
					r.atLeast(crowd, peer.Holdfast, crew.LeastShare, 0.5, "shares from %.2f"),
					r.atMost(crowd, peer.Holdfast, crew.LargestShare, 2, "to %.2f"))...)
			}},
		Target{Work: "one lock, 8 processes x 125, cohort off: grants/s",
			AtMost: "2.5x rueidislock, 1x the best peer; Jain ≥ 0.95, ≤ 2.5 commands per grant",
			Beside: crowd,
			Checks: func(r *Results) []Check {
				rueidis := r.times(crowd, 2.5, 2.5, peer.HoldfastWithoutCohort, rueidislocks...)[0]
				return append([]Check{rueidis}, append(
					r.times(crowd, 1, 1, peer.HoldfastWithoutCohort, slices.Concat(peers, []string{crew.Redisson})...),
					r.atLeast(crowd, peer.HoldfastWithoutCohort, crew.Jain, 0.95, "Jain %.2f"),
					r.atMost(crowd, peer.HoldfastWithoutCohort, crew.CommandsPerOp, 2.5, "%.2f commands"))...)
			}},
		Target{Work: "hand-off to one waiter in another process: p50", AtMost: "≤ 0.7x rueidislock's, ≤ the best of all",
			Checks: func(r *Results) []Check {
				return []Check{
					r.lessThan(work.HandOff, crew.P50, 0.7, rueidislocks...),
					r.lessThan(work.HandOff, crew.P50, 1, slices.Concat(peers, []string{crew.Redisson})...),
					r.beyond(work.HandOff, crew.P50, peer.Holdfast, work.Message, "%.2fx a message alone"),
				}
			}},
	)
}

func otherTargets() []Target {
	beside := func(workload string, factor float64) func(r *Results) []Check {
		return func(r *Results) []Check { return r.times(workload, factor, factor, peer.Holdfast, crew.Redisson)[:1] }
	}
	return []Target{
		{Work: "fair lock, 1,000 waiters in 8 processes: grants/s", AtMost: "10x Redisson's fair lock",
			Beside: work.Fair(1000), Checks: beside(work.Fair(1000), 10)},
		{Work: "fair lock: server time per grant, 10 to 5,000 waiters", AtMost: "flat, at most 3x", Checks: fairIsFlat},
		{Work: "semaphore of 10, 1,000 waiters: grants/s", AtMost: "ahead of Redisson's",
			Beside: work.Semaphore, Checks: beside(work.Semaphore, 1)},
		{Work: "read/write 95:5, 200 goroutines: grants/s", AtMost: "ahead of Redisson's",
			Beside: work.ReadWrite, Checks: beside(work.ReadWrite, 1)},
		{Work: "latch, 1,000 waiters: until all awake, p50", AtMost: "ahead of Redisson's",
			Checks: func(r *Results) []Check {
				return []Check{r.lessThan(work.Latch, crew.P50, 1, crew.Redisson)}
			}},
		{Work: "16 stripes against one lock, 1 ms held", AtMost: "12x; skewed keys beside it",
			Checks: func(r *Results) []Check {
				return []Check{
					r.times(work.Stripes, 12, 12, work.ManyStripes, work.OneStripe)[0],
					r.beyond(work.Stripes, crew.PerSecond, work.SkewedStripes, work.OneStripe, "%.1fx with skewed keys"),
				}
			}},
	}
}

// workTargets are about elections and results that are made once.
func workTargets() []Target {
	const late = 100 * time.Millisecond
	return []Target{
		{Work: fmt.Sprintf("election, leases of %g s, leader killed: until the next leads", peer.Term.Seconds()),
			AtMost: "the lease + 100 ms, always; beside etcd's",
			Checks: func(r *Results) []Check {
				most, ok := r.find(work.ElectionKilled, peer.Holdfast).Most(crew.Max)
				worst := r.never(work.ElectionKilled, peer.Holdfast, crew.Max, float64((peer.Term + late).Microseconds()), "")
				worst.Text, worst.Known = fmt.Sprintf("at the latest %.2f s", most/1e6), ok
				return []Check{
					worst,
					r.beyond(work.ElectionKilled, crew.P50, peer.Holdfast, peer.Etcd, "p50 %.2fx etcd's"),
					r.beyond(work.ElectionKilled, crew.P50, peer.Holdfast, peer.RedsyncElection, "%.2fx "+peer.RedsyncElection),
				}
			}},
		{Work: "election, leader resigned: until the next leads, p50", AtMost: "≤ etcd's",
			Checks: func(r *Results) []Check {
				return []Check{
					r.lessThan(work.ElectionResigned, crew.P50, 1, peer.Etcd),
					r.beyond(work.ElectionResigned, crew.P50, peer.Holdfast, peer.RedsyncElection, "%.3fx "+peer.RedsyncElection),
				}
			}},
		{Work: "1,000 callers of a Once in 8 clients: until all have the result, p50",
			AtMost: "ahead of singleflight and redsync; 1 run; ≤ 3 commands a client",
			Checks: func(r *Results) []Check {
				return []Check{
					r.lessThan(work.Once, crew.P50, 1, onces...),
					r.never(work.Once, peer.Holdfast, work.RunsPerKey, 1, "%.0f run"),
					r.atMost(work.Once, peer.Holdfast, crew.CommandsPerOp, 3*8, "%.1f commands"),
				}
			}},
	}
}

// fairIsFlat compares the server's time per grant of the largest crowd with that of the smallest.
// The crowds are different workloads, so it sets the end of one interval against the other end of
// the other.
func fairIsFlat(r *Results) []Check {
	var texts []string
	var least, most Spread
	for i, waiters := range work.FairOf {
		s, ok := r.Of(work.Fair(waiters), peer.Holdfast, crew.ServerPerOp)
		if !ok {
			return []Check{{}}
		}
		if i == 0 {
			least = s
		}
		if s.Median > most.Median {
			most = s
		}
		texts = append(texts, fmt.Sprintf("%.0f", s.Median))
	}
	s := Spread{most.Median / least.Median, most.Low / least.High, most.High / least.Low, most.Sure && least.Sure}
	text := fmt.Sprintf("%.1fx (%s µs)", s.Median, strings.Join(texts, ", "))
	return []Check{{Text: text, Verdict: s.atMost(3), Known: true}}
}

func costTargets() []Target {
	return []Target{
		{Work: "100,000 held and renewed locks",
			AtMost: "each: 0 goroutines, ≤ 400 B of heap; client CPU ≤ 2 µs a renewal and ≤ 0.05x redislock's; " +
				"another client's PING p99 ≤ idle + 0.5 ms",
			Checks: func(r *Results) []Check {
				return []Check{
					r.atMost(work.Renewal, peer.Holdfast, work.GoroutinesPerLock, 0.001, "%.3f goroutines"),
					r.atMost(work.Renewal, peer.Holdfast, work.HeapPerLock, 400, "%.0f B"),
					r.atMost(work.Renewal, peer.Holdfast, crew.ClientPerOp, 2, "%.1f µs"),
					r.lessThan(work.Renewal, crew.ClientPerOp, 0.05, peer.Redislock),
					r.beyond(work.Renewal, crew.ClientPerOp, peer.Holdfast, work.Refreshes, "%.2fx "+work.Refreshes),
					r.beyond(work.Renewal, crew.ClientPerOp, peer.Holdfast, work.Extends, "%.2fx "+work.Extends),
					r.pingDelay(work.Renewal, peer.Holdfast, 0.5, "PING p99 %+.2f ms"),
				}
			}},
		{Work: "256 goroutines of pairs: p99 of another client's PING", AtMost: "≤ idle + 0.3 ms; beside rueidislock's",
			Checks: func(r *Results) []Check {
				shown := func(contender, text string) Check {
					c := r.pingDelay(work.Neighbour, contender, 0, text)
					c.Verdict = Shown
					return c
				}
				return []Check{
					r.pingDelay(work.Neighbour, peer.Holdfast+work.Resting, 0.3, "with rests %+.2f ms"),
					shown(peer.RueidislockTuned+work.Resting, "rueidislock's %+.2f ms"),
					r.pingDelay(work.Neighbour, peer.Holdfast, 0.3, "without a rest %+.2f ms"),
					shown(peer.RueidislockTuned, "rueidislock's %+.2f ms"),
				}
			}},
		{Work: "1,000 idle waiters on one held lock", AtMost: "≤ 1 command/s per process; CPU beside a 100 ms poller's",
			Checks: func(r *Results) []Check {
				s, ok := r.Of(work.Idle, peer.Holdfast, crew.CommandsPerSecond)
				s = Spread{s.Median / work.IdleProcesses, s.Low / work.IdleProcesses, s.High / work.IdleProcesses, s.Sure}
				return []Check{
					{Text: fmt.Sprintf("%.2f commands/s", s.Median), Verdict: s.atMost(1), Known: ok},
					r.beyond(work.Idle, crew.ClientPerSecond, peer.Holdfast, peer.Redislock, "%.3fx the poller's CPU"),
				}
			}},
		{Work: "OpenTelemetry: uncontended pair, 1 goroutine, p50", AtMost: "on, with a no-op exporter: ≤ 1.1x off",
			Checks: func(r *Results) []Check {
				s, ok := r.Ratio(work.Telemetry, crew.P50, work.TelemetrySDK, work.TelemetryOff)
				off, known := r.Of(work.Telemetry, work.TelemetryOff, crew.AllocsPerOp)
				return []Check{
					{ratio(s, work.TelemetryOff), s.atMost(1.1), ok, s.Median},
					r.beyond(work.Telemetry, crew.P50, work.TelemetryEmptySDK, work.TelemetryOff, "two empty spans %.2fx"),
					r.beyond(work.Telemetry, crew.P50, work.TelemetryBatch, work.TelemetryOff, "batched %.2fx"),
					r.beyond(work.Telemetry, crew.P50, work.TelemetryEmptyBatch, work.TelemetryOff, "two empty spans batched %.2fx"),
					{Text: fmt.Sprintf("%.1f allocations off", off.Median), Known: known},
				}
			}},
	}
}

// scaleTargets are about what must not happen at all, so the worst round counts.
func scaleTargets() []Target {
	return []Target{
		{Work: "1,000,000 held locks, 30 s leases, one Client, beside 6 processes x 256 goroutines",
			AtMost: "0 lost; longest gap ≤ 0.5 of a lease",
			Checks: func(r *Results) (all []Check) {
				for _, contender := range []string{work.HeldNear, work.HeldAway} {
					all = append(all, r.never(work.ScaleHeld, contender, crew.Lost, 0, contender+": %.0f lost"),
						r.never(work.ScaleHeld, contender, crew.LongestGap, 0.5, "%.2f of a lease"))
				}
				return all
			}},
		{Work: "1,000 Clients, the server killed and back after 3 s",
			AtMost: "≤ 2 dials/s and Client meanwhile; 3 s after its return all hold, wait or were notified",
			Checks: func(r *Results) []Check {
				return []Check{
					r.never(work.ScaleKilled, work.Killed, crew.DialsPerClient, 2, "%.1f dials"),
					r.never(work.ScaleKilled, work.Killed, crew.Lost, 0, "%.0f do neither"),
					r.never(work.ScaleKilled, work.Killed, crew.Seconds, 3, "all after %.1f s"),
				}
			}},
	}
}

// pingDelay checks that beside the contender another client's PING takes at most that many ms longer
// than on an idle server, at p99. It compares round by round.
func (r *Results) pingDelay(workload, contender string, most float64, text string) Check {
	idle := r.find(workload, work.Nothing).of(crew.P99)
	var delays []float64
	for round, loaded := range r.find(workload, contender).of(crew.P99) {
		if alone, ok := idle[round]; ok {
			delays = append(delays, (loaded-alone)/1000)
		}
	}
	s, ok := spreadOf(delays)
	return Check{Text: fmt.Sprintf(text, s.Median), Verdict: s.atMost(most), Known: ok}
}
