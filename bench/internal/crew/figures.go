// Figures are what the program reports of a run.

package crew

import (
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/bench/internal/work"
)

// Figures are what one run measured, by name: the figures below, and a workload's own figures.
type Figures map[string]float64

// The names of the figures.
const (
	PerSecond         = "perSecond"         // pairs, grants, or whatever the workload does
	P50               = "p50us"             // of the durations, in microseconds
	P99               = "p99us"             //
	Max               = "maxus"             //
	Samples           = "samples"           // how many durations the quantiles are of
	Jain              = "jain"              // Jain's index over all workers, if there are several
	Starved           = "starved"           // workers that did nothing
	LeastShare        = "leastShare"        // least share of a process, relative to an even share
	LargestShare      = "largestShare"      //
	CommandsPerOp     = "commandsPerOp"     // commands that clients sent
	CommandsPerSecond = "commandsPerSecond" //
	ClientPerOp       = "clientUsPerOp"     // CPU of all processes, in microseconds
	ClientPerSecond   = "clientUsPerSecond" //
	ServerPerOp       = "serverUsPerOp"     // CPU of the server, in microseconds
	ServerPerSecond   = "serverUsPerSecond" //
	AllocsPerOp       = "allocsPerOp"       //
	BytesPerOp        = "bytesPerOp"        // bytes allocated

	// The figures of cmd/scale.
	Lost                 = "lost"                 // what should not be lost: leases, or callers without an answer
	Seconds              = "seconds"              // until all had what they wanted
	LongestGap           = "longestGap"           // between two renewals of a lock, as a share of the lease
	LeastTTL             = "leastTTL"             // that a lock had left, as a share of the lease
	DialsPerClient       = "dialsPerClient"       // per second, while the server was gone
	ConnectionsPerClient = "connectionsPerClient" //
	MemoryPerOne         = "rssPerOne"            // of the processes, for each waiter or Client, in bytes
	KeysLeft             = "keysLeft"             // for each name that was used
	ServerBytesLeft      = "serverBytesLeft"      // for each name that was used
	ClientBytesLeft      = "clientBytesLeft"      // for each name that was used
	KeysAfter6Days       = "keysAfter6Days"       // for each name that was used
	KeysAfter7Days       = "keysAfter7Days"       //
)

// figures combines what the processes measured.
func figures(w work.Workload, parts []measure.Part, served measure.Served) (Figures, error) {
	f := make(Figures)
	var done []int64 // by each worker
	var used measure.Usage
	durations := make(map[int]int64)
	shares := make([]int64, len(parts)) // by each process
	for i, p := range parts {
		if p.Failed != "" {
			return nil, errors.New(p.Failed)
		}
		for _, n := range p.Done {
			shares[i] += n
		}
		done = append(done, p.Done...)
		used.CPU += p.Usage.CPU
		used.Allocs += p.Usage.Allocs
		used.Bytes += p.Usage.Bytes
		for bucket, n := range p.Durations {
			durations[bucket] += n
		}
		for name, value := range p.Figures {
			f[name] += value
		}
	}
	seconds, ops := parts[0].Seconds, int64(0)
	for _, n := range shares {
		ops += n
	}
	if ops == 0 && !w.Idle {
		return nil, fmt.Errorf("%s: nothing was done in %.1f s", Hung, seconds)
	}
	f.rates(seconds, used, served)
	f.durations(durations)
	if ops > 0 {
		f.perOp(float64(ops), seconds, used, served)
	}
	if w.Latency {
		delete(f, PerSecond) // here it is only how often a duration was measured
	}
	if ops > 0 && !w.Latency && !w.Idle {
		f.fairness(done, shares, float64(ops))
	}
	return f, nil
}

func (f Figures) rates(seconds float64, used measure.Usage, served measure.Served) {
	f[CommandsPerSecond] = served.Commands / seconds
	f[ClientPerSecond] = float64(used.CPU.Microseconds()) / seconds
	f[ServerPerSecond] = float64(served.CPU.Microseconds()) / seconds
}

func (f Figures) perOp(ops, seconds float64, used measure.Usage, served measure.Served) {
	f[PerSecond] = ops / seconds
	f[CommandsPerOp] = served.Commands / ops
	f[ClientPerOp] = float64(used.CPU.Microseconds()) / ops
	f[ServerPerOp] = float64(served.CPU.Microseconds()) / ops
	f[AllocsPerOp] = float64(used.Allocs) / ops
	f[BytesPerOp] = float64(used.Bytes) / ops
}

func (f Figures) fairness(done, shares []int64, ops float64) {
	if len(done) > 1 {
		f[Jain], f[Starved] = measure.Jain(done), float64(measure.Starved(done))
	}
	if len(shares) > 1 {
		even := ops / float64(len(shares))
		f[LeastShare] = float64(slices.Min(shares)) / even
		f[LargestShare] = float64(slices.Max(shares)) / even
	}
}

func (f Figures) durations(buckets map[int]int64) {
	samples := int64(0)
	for _, n := range buckets {
		samples += n
	}
	if samples == 0 {
		return
	}
	f[Samples] = float64(samples)
	for name, share := range map[string]float64{P50: 0.5, P99: 0.99, Max: 1} {
		f[name] = float64(measure.Quantile(buckets, share).Nanoseconds()) / 1e3
	}
}
