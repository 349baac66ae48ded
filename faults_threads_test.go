// What the kernel says of how long this process's threads were ready to run and did not.

package holdfast_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// starvation is the whole account for a bound of a few milliseconds. A pulse feels when a
// processor is away: its timers are late then, and no thread has been waiting. It does not
// feel that one thread alone waits, which has the wheel of the leases in its hands: only the
// kernel knows that.
type starvation struct {
	pulse   *pulse
	threads *threads
}

// between returns for how long the process was starved, by whichever shows more.
func (s starvation) between(from, to time.Time) time.Duration {
	return max(s.pulse.slack(from, to), s.threads.starved(from, to))
}

// threads is a record of what the kernel says, made every threadsBeat. Where that is not
// Linux it is empty.
type threads struct {
	mu      sync.Mutex
	samples []threadSample
	stop    chan struct{}
	done    chan struct{}
}

// threadSample is for how long each thread has waited to run, in all.
type threadSample struct {
	at     time.Time
	waited map[string]time.Duration
}

const threadsBeat = 10 * time.Millisecond

// watchThreads starts a record, which ends when t does.
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

// starved returns for how long one thread waited to run, at the most, from the last sample
// before the one instant to the first after the other.
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
