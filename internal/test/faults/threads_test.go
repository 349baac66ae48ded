// The kernel tells for how long this process's threads were ready to run and did not run.

package faults

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// starvation is the whole account for a bound of a few milliseconds. A pulse feels when a processor
// is away: its timers are late then, though no thread has been waiting. A pulse does not feel when
// a single thread waits, such as the thread that has the wheel of the leases in its hands. Only the
// kernel knows that.
type starvation struct {
	pulse   *redistest.Pulse
	threads *threads
}

// between returns for how long the process was starved, by the account that shows more.
func (s starvation) between(from, to time.Time) time.Duration {
	return max(s.pulse.Slack(from, to), s.threads.starved(from, to))
}

// threads is a record of what the kernel tells, with one sample every threadsBeat. On systems other
// than Linux the samples are empty.
type threads struct {
	mu      sync.Mutex
	samples []threadSample
	stop    chan struct{}
	done    chan struct{}
}

// threadSample is the total time for which each thread has waited to run.
type threadSample struct {
	at     time.Time
	waited map[string]time.Duration
}

const threadsBeat = 10 * time.Millisecond

// watchThreads starts a record. The record ends when t ends.
func watchThreads(t testing.TB) *threads {
	w := &threads{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for {
			s := sampleThreads()
			w.mu.Lock()
			w.samples = append(w.samples, s)
			w.mu.Unlock()
			select {
			case <-w.stop:
				return
			case <-time.After(threadsBeat):
			}
		}
	}()
	t.Cleanup(func() {
		close(w.stop)
		<-w.done
	})
	return w
}

func sampleThreads() threadSample {
	s := threadSample{time.Now(), make(map[string]time.Duration)}
	files, _ := filepath.Glob("/proc/self/task/*/schedstat")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		if fields := bytes.Fields(text); len(fields) == 3 { // time run, time waited, in ns; turns
			ns, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			s.waited[file] = time.Duration(ns)
		}
	}
	return s
}

// starved returns the longest time for which one thread waited to run, from the last sample before
// from to the first sample after to.
func (w *threads) starved(from, to time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	first, _ := slices.BinarySearchFunc(w.samples, from, func(s threadSample, at time.Time) int { return s.at.Compare(at) })
	last, _ := slices.BinarySearchFunc(w.samples, to, func(s threadSample, at time.Time) int { return s.at.Compare(at) })
	before, after := w.samples[max(first-1, 0)], w.samples[min(last, len(w.samples)-1)]
	var worst time.Duration
	for thread, waited := range after.waited {
		worst = max(worst, waited-before.waited[thread])
	}
	return worst
}
