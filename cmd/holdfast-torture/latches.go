// Latches: lanes count down one after the other, and the rest that each got must be right.

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/latch"
)

// latchLanes is how many lanes count down each latch and wait for it: the lanes of the
// processes that are never killed.
const latchLanes = steady * lanesOfAKind

// stuckAfter is the longest time that a latch may take; pauses and outages are shorter.
const stuckAfter = 30 * time.Second

// runLatches goes from latch to latch until ctx ends. The leader sets the next latch before it
// counts down this one, so that the next one is set for every lane that has waited.
func (l *lane) runLatches(ctx context.Context, leads bool) error {
	for ctx.Err() == nil {
		epoch := l.epoch.Load()
		if leads {
			l.setLatch(ctx, epoch, 0)
		} else {
			l.awaitLatch(ctx, epoch)
		}
		for round := 0; ctx.Err() == nil && epoch == l.epoch.Load(); round++ {
			if leads {
				l.setLatch(ctx, epoch, round+1)
			}
			if err := l.passLatch(ctx, epoch, round); err != nil {
				return fmt.Errorf("lane %s: %w", l.name, err)
			}
		}
	}
	return nil
}

func (l *lane) latch(epoch int64, round int) *latch.Latch {
	return l.ways.clients[0].Latch(fmt.Sprintf("latch-%d.%d", round, epoch))
}

// goesOn reports whether the lanes still count down the latches of this epoch.
func (l *lane) goesOn(ctx context.Context, epoch int64) bool {
	return ctx.Err() == nil && l.epoch.Load() == epoch
}

func (l *lane) setLatch(ctx context.Context, epoch int64, round int) {
	for l.goesOn(ctx, epoch) {
		if _, err := l.latch(epoch, round).TrySetCount(ctx, latchLanes); err == nil {
			return
		}
	}
}

// awaitLatch waits until the first latch of the epoch is set.
func (l *lane) awaitLatch(ctx context.Context, epoch int64) {
	for l.goesOn(ctx, epoch) {
		if n, err := l.latch(epoch, 0).Count(ctx); err == nil && n > 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// passLatch counts one latch down and waits for it.
func (l *lane) passLatch(ctx context.Context, epoch int64, round int) error {
	this := l.latch(epoch, round)
	n := note{Topic: countedDown, Object: this.Name(), Call: stamp(time.Now())}
	left, err := this.CountDown(ctx)
	n.At, n.Value = stamp(time.Now()), left
	if err != nil {
		n.Ending = classOf(err)
	}
	if err := l.tell(n); err != nil {
		return err
	}
	started := time.Now()
	for l.goesOn(ctx, epoch) {
		bounded, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := this.Wait(bounded)
		cancel()
		if err == nil {
			return l.tell(note{Topic: waited, Object: this.Name(), Call: stamp(started), At: stamp(time.Now())})
		}
		if time.Since(started) > stuckAfter && l.goesOn(ctx, epoch) {
			return l.tell(note{Topic: failed, Object: this.Name(), Ending: unforeseen + "a latch is stuck"})
		}
	}
	return nil
}

// latch judges one latch.
func (v *verdict) latch(o *object) {
	k := v.kind("latch")
	for _, c := range o.counts {
		if v.counts.meet(c.call-v.counts.lease, c.at) {
			return
		}
		if !c.wait {
			k.Grants++
		} else if took := time.Duration(c.at - c.call); took > k.WorstWait.d() {
			k.WorstWait = duration(took)
		}
	}
	v.histories = append(v.histories, func() []history {
		return []history{latchHistory(o.name, latchLanes, o.counts)}
	})
}
