// The faults: which there are, in what order they come, and a log of those that were injected.

package main

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// contenderClasses are the faults of contenders.
var contenderClasses = []string{"contender killed", "contender stopped"}

// classesOf returns all classes of faults of a topology, sorted.
func classesOf(topology string) []string {
	own, ok := serverClasses[topology]
	if !ok {
		return nil
	}
	all := slices.Sorted(slices.Values(slices.Concat(wireClassesOf(topology), proxyClasses, contenderClasses, []string{unresolved},
		slices.Collect(maps.Keys(anyServer)), slices.Collect(maps.Keys(own)))))
	if !subscribes(topology) {
		all = slices.DeleteFunc(all, func(class string) bool { return class == subscribersKilled })
	}
	return all
}

// subscribes reports whether the contenders of a topology subscribe. The contenders of a quorum
// poll instead.
func subscribes(topology string) bool { return topology != "quorum" }

// wireClassesOf returns the classes of faults that affect one command.
func wireClassesOf(topology string) []string {
	all := slices.Clone(wireClasses)
	if subscribes(topology) {
		all = append(all, subscriptionClasses...)
	}
	if replicasOf[topology] > 0 {
		all = append(all, waitClasses...)
	}
	return all
}

// subscribersKilled is the fault that a server closes the connections of all subscribers.
const subscribersKilled = "subscribers killed"

// unresolved is the fault that contenders cannot resolve any name, and that all of them must
// connect anew.
const unresolved = "names not resolved"

// brief are the faults of servers that delay no lane: at the worst a message is lost.
var brief = []string{"connections cut", "replies trickle", "scripts flushed", subscribersKilled, "slot moved"}

// The series of faults run beside each other. Each pauses for this long on average between the
// end of a fault and the beginning of the next, times the run's Pauses.
const (
	betweenWire       = 100 * time.Millisecond
	betweenContenders = 800 * time.Millisecond
	betweenServers    = 1500 * time.Millisecond
)

// log records the faults that were injected.
type log struct {
	mu         sync.Mutex
	counts     map[string]int
	total      int
	last       string
	windows    []window
	shadows    []span // outages, stops and kills: waits are longer then
	recoveries []recovery
	strikes    []strike
}

// strike is a fault of a server, and when it began and was over.
type strike struct {
	Class    string
	From, To int64
}

// window is a time in which Redis may forget what it has acknowledged.
type window struct {
	span
	loss loss
}

// recovery records the time at which the servers took writes again after an outage.
type recovery struct {
	class string
	at    int64
}

func newLog() *log { return &log{counts: map[string]int{}} }

func (l *log) add(class string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[class]++
	l.total++
	l.last = class
}

func (l *log) state() (total int, last string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total, l.last
}

// shadow records a time in which waits may be long.
func (l *log) shadow(from, to int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shadows = append(l.shadows, span{from, to})
}

// recovered records that the servers take writes again.
func (l *log) recovered(class string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recoveries = append(l.recoveries, recovery{class, stamp(time.Now())})
}

// series injects faults one after the other until ctx ends. pause is how long it waits on
// average between two of them.
func (s *soak) series(ctx context.Context, name string, classes []string, pause time.Duration, inject func(class string, series int)) {
	classes = slices.DeleteFunc(slices.Clone(classes), func(class string) bool {
		return !slices.Contains(s.config.Faults, class)
	})
	if len(classes) == 0 {
		return
	}
	r := newRand(s.config.Seed, name)
	slices.Sort(classes)
	r.Shuffle(len(classes), func(i, j int) { classes[i], classes[j] = classes[j], classes[i] })
	pause = time.Duration(float64(pause) * s.config.Pauses)
	for n := 0; ; n++ {
		timer := time.NewTimer(pause/2 + time.Duration(r.Int64N(int64(pause))))
		select {
		case <-timer.C:
			inject(draw(classes, n, r), n)
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// draw returns each class once before it returns any again, so that a short run has as many
// classes as it can.
func draw(classes []string, n int, r *rand.Rand) string {
	if n < len(classes) {
		return classes[n]
	}
	return classes[r.IntN(len(classes))]
}

// startFaults starts the series; wait returns when the last fault is over.
func (s *soak) startFaults(ctx context.Context) (wait func()) {
	var running sync.WaitGroup
	wire := newRand(s.config.Seed, "wire faults")
	running.Go(func() {
		s.series(ctx, "wire", wireClassesOf(s.config.Topology), betweenWire, func(class string, _ int) {
			s.topology.network().arm(class, wire, func() { s.log.add(class) })
		})
	})
	people := newRand(s.config.Seed, "contender faults")
	running.Go(func() {
		s.series(ctx, "contenders", contenderClasses, betweenContenders, func(class string, _ int) {
			if class == "contender killed" {
				s.crew.kill(people)
			} else {
				s.crew.stop(people)
			}
			s.log.add(class)
		})
	})
	running.Go(func() {
		own := serverClasses[s.config.Topology]
		classes := slices.Concat(proxyClasses, []string{unresolved}, slices.Collect(maps.Keys(anyServer)), slices.Collect(maps.Keys(own)))
		s.series(ctx, "servers", classes, betweenServers, s.strike)
	})
	return running.Wait
}

// strike injects one fault of the series of the servers, and records it.
func (s *soak) strike(class string, n int) {
	from := stamp(time.Now())
	s.deal(class, newRand(s.config.Seed, "server fault "+class+strings.Repeat("+", n)))
	to := stamp(time.Now())
	s.log.add(class)
	s.log.mu.Lock()
	s.log.strikes = append(s.log.strikes, strike{class, from, to})
	s.log.mu.Unlock()
	if !slices.Contains(brief, class) {
		s.log.shadow(from, to)
	}
	if lost := cmp.Or(anyServer[class], serverClasses[s.config.Topology][class]); lost != nothing {
		s.log.mu.Lock()
		s.log.windows = append(s.log.windows, window{span{from, to}, lost})
		s.log.mu.Unlock()
		s.crew.nextEpoch()
	}
}

// deal injects a fault of servers and returns when it is over.
func (s *soak) deal(class string, r *rand.Rand) {
	switch {
	case slices.Contains(proxyClasses, class):
		s.topology.network().disturb(class, r)
	case class == unresolved:
		outage := time.Duration(50+r.IntN(1000)) * time.Millisecond
		s.crew.unresolve(outage)
		for _, p := range s.topology.network().proxies {
			p.Cut()
		}
		time.Sleep(outage)
	case class == "scripts flushed":
		for _, master := range s.topology.masters() {
			master.FlushScripts()
		}
	case class == subscribersKilled:
		for _, master := range s.topology.masters() {
			err := master.Admin().Do(context.Background(), "CLIENT", "KILL", "TYPE", "pubsub").Err()
			if err != nil {
				s.t.Errorf("kill the subscribers of %s: %v", master.Addr(), err)
			}
		}
	default:
		b := &blow{rand: r, usable: func() { s.log.recovered(class) }}
		if all := replicasOf[s.config.Topology]; all > 0 && s.config.Replicas == all {
			// No grant is confirmed before the last replica is back.
			defer b.usable()
			b = &blow{rand: r, usable: func() {}}
		}
		s.topology.strike(class, b)
	}
}
