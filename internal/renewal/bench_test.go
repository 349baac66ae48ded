package renewal

import (
	"fmt"
	"math/rand"
	"testing"
	"time"
)

// BenchmarkSchedulerFire measures one firing as the scheduler does it: off the wheel, Tick, back on
// the wheel. If renew is set, the renewal goes through the outbox to Send as well.
func BenchmarkSchedulerFire(b *testing.B) {
	for _, renew := range []bool{false, true} {
		for _, held := range []int{10_000, 100_000} {
			b.Run(fmt.Sprintf("renew=%v/held=%d", renew, held), func(b *testing.B) {
				benchmarkSchedulerFire(b, held, renew)
			})
		}
	}
}

// benchmarkSchedulerFire drives the rounds itself, at times that it chooses, so that it measures
// work and not waiting.
func benchmarkSchedulerFire(b *testing.B, held int, renew bool) {
	s := New(&fakeSender{})
	defer s.Close()
	s.wheel = NewWheel(slotCount, 0)
	const period = 10 * time.Second
	fired := 0
	tick := func(now time.Time) (time.Time, bool) { fired++; return now.Add(period), renew }
	tasks := make([]fakeTask, held)
	for i := range tasks {
		tasks[i].tick = tick
		s.Schedule(&tasks[i], s.epoch.Add(time.Duration(rand.Int63n(int64(period)))))
	}
	ready := make([]Task, 0, MaxBatch)
	now := s.epoch
	b.ReportAllocs()
	b.ResetTimer()
	for fired < b.N {
		ready = s.round(now, ready)
		if next, _ := s.wheel.Next(); next > s.tick(now) {
			now = s.start(next)
		}
	}
}
