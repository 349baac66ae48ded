// A queue is first in, first out; a backlog gives out what ends first; and the clock tells a suspended machine.

package renewal

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// A queue is first in, first out. It reuses its buffer, and gives back what a burst has made of it.
func TestQueueKeepsOrderAndItsBuffer(t *testing.T) {
	var q queue[int]
	for i := range 100_000 { // never empty
		if q.push(i); i < 10 {
			continue
		}
		if got := q.pop(); got != i-10 {
			t.Fatalf("popped %d, want %d", got, i-10)
		}
	}
	if q.len() != 10 || cap(q.items) > 64 {
		t.Errorf("len = %d, want 10; the buffer has grown to %d", q.len(), cap(q.items))
	}
	for i := range 10 * keepCap {
		q.push(i)
	}
	for q.len() > 0 {
		q.pop()
	}
	redistest.Equal(t, cap(q.items), 0, "an empty queue keeps %d tasks of a burst")
}

// Whatever order tasks come in, the one with the least by is given out first.
func TestBacklogGivesOutWhatEndsFirst(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		var b backlog
		var want []time.Duration
		disorder := r.IntN(4) // 0: all come in order
		for range 500 {
			if r.IntN(5) < 3 {
				by := time.Duration(len(want)) + time.Duration(r.IntN(1+20*disorder))
				if len(want) > 0 && disorder == 0 {
					by = want[len(want)-1]
				}
				b.push(pending{by: by})
				want = append(want, by)
				slices.Sort(want)
			} else if len(want) > 0 {
				if got := b.pop().by; got != want[0] {
					t.Fatalf("seed %d: got %d, want %d", seed, got, want[0])
				}
				want = want[1:]
			}
			if b.len() != len(want) {
				t.Fatalf("seed %d: %d tasks, want %d", seed, b.len(), len(want))
			}
		}
	}
}

func TestRanAhead(t *testing.T) {
	for _, c := range []struct {
		what            string
		wall, monotonic time.Duration
		want            bool
	}{
		{"both stood still", 0, 0, false},
		{"both moved", 40 * time.Millisecond, 40 * time.Millisecond, false},
		{"a long sleep without tasks", time.Hour, time.Hour, false},
		{"slewed by 500 ppm for an hour", time.Hour + 1800*time.Microsecond, time.Hour, false},
		{"at the threshold", 90 * time.Millisecond, 40 * time.Millisecond, false},
		{"just above it", 90*time.Millisecond + 1, 40 * time.Millisecond, true},
		{"suspended for a minute", time.Minute, 40 * time.Millisecond, true},
		{"set forward by a second", time.Second + 40*time.Millisecond, 40 * time.Millisecond, true},
		{"set back by a second", -960 * time.Millisecond, 40 * time.Millisecond, false},
		{"late wake-up, no suspension", 3 * time.Second, 3 * time.Second, false},
	} {
		if got := ranAhead(c.wall, c.monotonic); got != c.want {
			t.Errorf("%s: ranAhead(%v, %v) = %v, want %v", c.what, c.wall, c.monotonic, got, c.want)
		}
	}
}

func TestElapsedTellsASuspendedMachine(t *testing.T) {
	before := time.Now()
	after := before.Add(time.Minute + 40*time.Millisecond)
	// Package time offers no way to take something off the monotonic reading alone: it is the second word of a Time.
	*(*int64)(unsafe.Add(unsafe.Pointer(&after), 8)) -= int64(time.Minute)
	wall, monotonic := elapsed(before, after)
	if wall != time.Minute+40*time.Millisecond || monotonic != 40*time.Millisecond {
		t.Errorf("elapsed = %v of wall, %v of monotonic time; want 1m0.04s and 40ms", wall, monotonic)
	}
	if !ranAhead(wall, monotonic) {
		t.Error("a minute of suspension was not seen")
	}
}
