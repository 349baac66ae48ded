// This test lists very many names. It has bounds of time and memory, so it belongs to the long run.

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Of 100 000 locks among 300 000 keys the first line is there within a second, the list takes at most 60 MB, and Redis
// answers others at p99 within 5 ms of what it takes when idle.
func TestLsOfAHundredThousandLocks(t *testing.T) {
	redistest.LongRun(t)
	s, url := server(t)
	for from := 0; from < 100_000; from += 1000 {
		p := s.Admin().Pipeline()
		for n := from; n < from+1000; n++ {
			name := fmt.Sprintf("orders:%06d", n)
			p.HSet(t.Context(), name, fmt.Sprintf("5f3a9c41-0d2b-4c7e-9a10-%012x:1", n), 1)
			p.PExpire(t.Context(), name, time.Hour)
			p.Set(t.Context(), fmt.Sprint("page:", n), "some text", 0)
			p.Set(t.Context(), fmt.Sprint("session:", n), "some text", 0)
		}
		if _, err := p.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	idle := latency(t, s, func() { time.Sleep(5 * time.Second) })
	var first time.Duration
	var lines int
	var c *command
	busy := latency(t, s, func() {
		began := time.Now()
		c = start(t, url, "", "ls")
		c.line()
		first, lines = time.Since(began), 1
		for range c.lines {
			lines++
		}
		c.want(0)
	})
	memory := c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10 // of kB, on Linux
	t.Logf("%d lines, the first after %v, %d MB, p99 of a PING %v, idle %v", lines, first, memory, busy, idle)
	if lines != 100_001 || first > time.Second || memory > 60 || busy > idle+5*time.Millisecond {
		t.Errorf("%d lines, the first after %v, %d MB, p99 of a PING %v, idle %v", lines, first, memory, busy, idle)
	}
}

// latency returns the p99 of how long Redis takes to answer a PING while f runs.
func latency(t *testing.T, s *redistest.Proc, f func()) time.Duration {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var took []time.Duration
	var pinging sync.WaitGroup
	pinging.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			if s.Admin().Ping(ctx).Err() == nil {
				took = append(took, time.Since(began))
			}
			time.Sleep(2 * time.Millisecond)
		}
	})
	f()
	stop()
	pinging.Wait()
	slices.Sort(took)
	return took[len(took)*99/100]
}
