package renewal

import (
	"context"
	"fmt"
	"math/rand"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"
)

// periodic is the least that a held lease needs in order to be on the wheel. The benchmarks count
// it as the cost of the lease.
type periodic struct {
	entry  Entry
	period time.Duration
	renew  bool
	fired  func(p *periodic)
	asked  time.Time
}

func (p *periodic) Entry() *Entry                       { return &p.entry }
func (p *periodic) Key() string                         { return "key" }
func (p *periodic) Urgency() (time.Time, time.Duration) { return p.asked, 5 * time.Second }

func (p *periodic) Tick(now time.Time) (time.Time, bool) {
	if p.fired != nil {
		p.fired(p)
	}
	p.asked = now.Add(p.period)
	return p.asked, p.renew
}

func (p *periodic) Suspect(now time.Time) (time.Time, bool) { return p.Tick(now) }

// BenchmarkWheelFire takes one entry off the wheel and puts it back a period later.
func BenchmarkWheelFire(b *testing.B) {
	for _, held := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("held=%d", held), func(b *testing.B) {
			w := NewWheel(slotCount, 0)
			entries := make([]Entry, held)
			const period = int64(10 * time.Second / Resolution)
			for i := range entries {
				w.Set(&entries[i], 1+rand.Int63n(period))
			}
			now := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				e, _ := w.Pop(now)
				for ; e == nil; e, _ = w.Pop(now) {
					now, _ = w.Next()
				}
				w.Set(e, now+period)
			}
			b.ReportMetric(float64(unsafe.Sizeof(Entry{})), "B/entry")
		})
	}
}

// BenchmarkWheelMove measures what taking and releasing a lock costs on a full wheel.
func BenchmarkWheelMove(b *testing.B) {
	w := NewWheel(slotCount, 0)
	held := make([]Entry, 100_000)
	for i := range held {
		w.Set(&held[i], 1+rand.Int63n(2000))
	}
	var e Entry
	tick := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		tick = (tick + 17) % 2000
		w.Set(&e, 1+tick)
		w.Remove(&e)
	}
}

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
	tasks := make([]periodic, held)
	for i := range tasks {
		tasks[i] = periodic{period: period, renew: renew, fired: func(*periodic) { fired++ }}
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
	b.StopTimer()
}

// BenchmarkSchedule measures what taking and releasing a lock costs in the scheduler.
func BenchmarkSchedule(b *testing.B) {
	s := New(&fakeSender{})
	defer s.Close()
	tasks := make([]periodic, 10_000)
	for i := range tasks {
		tasks[i].period = 10 * time.Second
		s.Schedule(&tasks[i], time.Now().Add(tasks[i].period))
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		t := &periodic{period: time.Hour}
		for pb.Next() {
			s.Schedule(t, time.Now().Add(10*time.Second))
			s.Remove(t)
		}
	})
}

// BenchmarkHeld reports the heap that each scheduled task takes in addition to itself.
func BenchmarkHeld(b *testing.B) {
	const held = 100_000
	var extra uint64
	for b.Loop() {
		s := New(&fakeSender{})
		tasks := make([]periodic, held)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		at := time.Now().Add(time.Hour)
		for i := range tasks {
			s.Schedule(&tasks[i], at.Add(time.Duration(i)*time.Millisecond))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		extra = after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc)
		s.Close()
		runtime.KeepAlive(tasks)
	}
	b.ReportMetric(float64(extra)/held, "extra-B/task")
	b.ReportMetric(float64(unsafe.Sizeof(Entry{})), "B/entry")
}

// BenchmarkLateness holds 10 000 tasks in real time. Each task is due every 500 ms, and a server 1
// ms away renews it. The benchmark reports how late the tasks are called, after the time that they
// asked for. The tasks ask for the beginnings of steps, so rounding makes none of them early. The
// figures show timers, scheduling and the work of earlier tasks.
func BenchmarkLateness(b *testing.B) {
	const held, period = 10_000, 500 * time.Millisecond
	s := New(&fakeSender{
		node: func(context.Context, string) (string, error) { return "a", nil },
		send: func(context.Context, string, []Task, int) { time.Sleep(time.Millisecond) },
	})
	defer s.Close()

	var mu sync.Mutex
	late := make([]float64, 0, b.N)
	done := make(chan struct{})
	fired := func(p *periodic) {
		d := time.Since(p.asked)
		mu.Lock()
		defer mu.Unlock()
		if len(late) == b.N {
			return
		}
		if late = append(late, float64(d)/1e6); len(late) == b.N {
			close(done)
		}
	}
	tasks := make([]periodic, held)
	start := time.Now().Add(100 * time.Millisecond)
	b.ResetTimer()
	for i := range tasks {
		at := start.Add(time.Duration(rand.Int63n(int64(period))))
		tasks[i] = periodic{period: period, renew: true, fired: fired, asked: at}
		s.Schedule(&tasks[i], at)
	}
	<-done
	b.StopTimer()

	slices.Sort(late)
	b.ReportMetric(late[len(late)/2], "p50-ms")
	b.ReportMetric(late[len(late)*99/100], "p99-ms")
	b.ReportMetric(late[len(late)-1], "max-ms")
}
