// A plan says how often and for how long a workload is measured.

package main

import (
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/crew"
	"github.com/holdfast-go/holdfast/bench/internal/work"
)

// These are for every workload that has no plan of its own.
const (
	fullRounds, quickRounds = 9, 3
	fullWarm, quickWarm     = 300 * time.Millisecond, 200 * time.Millisecond
	fullWindow, quickWindow = 1200 * time.Millisecond, 600 * time.Millisecond
)

type plan struct {
	rounds       int
	warm, window time.Duration // of each round
	contenders   int
	redisson     time.Duration // how long it warms up before the first round; 0 if it takes no part
}

func (o options) planOf(w work.Workload) plan {
	p := plan{rounds: fullRounds, warm: fullWarm, window: fullWindow, contenders: len(o.contenders(w))}
	own := w.Window.Full
	if o.quick {
		p.rounds, p.warm, p.window, own = quickRounds, quickWarm, quickWindow, w.Window.Quick
	}
	if own > 0 {
		p.window = own
	}
	if w.Window.Warm > 0 {
		p.warm = w.Window.Warm
	}
	if n := w.Window.Rounds; n > 0 && (!o.quick || n < p.rounds) {
		p.rounds = n
	}
	if o.rounds > 0 {
		p.rounds = o.rounds
	}
	if p.contenders > len(w.Contenders) {
		p.redisson = crew.WarmFor(o.quick)
	}
	return p
}

// length returns about how long all rounds take.
func (p plan) length(w work.Workload) time.Duration {
	// Processes start and end.
	around := w.Window.Setup + 100*time.Millisecond + time.Duration(w.Processes)*50*time.Millisecond
	return p.redisson + time.Duration(p.rounds*p.contenders)*(p.warm+p.window+around)
}
