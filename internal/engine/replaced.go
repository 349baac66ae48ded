// What a Client does when another server has become the master: it may have forgotten what the former
// one did last.

package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
)

const (
	// repeatFor is how long a release may have to be repeated. Behind Sentinel a Client goes on at the former master
	// for about two seconds after another has taken over.
	repeatFor = 5 * time.Second
	// maxRepeats bounds how many releases are kept for that.
	maxRepeats = 1024
)

// releases are the last ones of a Client behind Sentinel. A server that has forgotten a release keeps the
// hold for the rest of its lease, though its owner knows that it is over.
type releases struct {
	mu       sync.Mutex
	last     []released    // a ring
	next     int           // where the next one goes once the ring is full
	replaced time.Duration // when the master was replaced last, by the Client's age; 0: never
}

// underWay is how long after the master was replaced the former one may still answer a release.
const underWay = 2 * time.Second

// released is a release that was answered.
type released struct {
	at     time.Duration // by the Client's age
	repeat func()        // sends it once more, in the background
}

// Released notes that a release was answered. repeat sends it once more, in the background, and must do
// no harm when it comes late.
func (e *Engine) Released(repeat func()) {
	r, one := &e.releases, released{e.Age(), repeat}
	r.mu.Lock()
	late := r.replaced != 0 && one.at-r.replaced < underWay
	r.note(one)
	r.mu.Unlock()
	if late {
		repeat()
	}
}

// note records a release, in place of the oldest if there are too many. The caller holds the mutex.
func (r *releases) note(one released) {
	if len(r.last) < maxRepeats {
		r.last = append(r.last, one)
		return
	}
	r.last[r.next] = one
	r.next = (r.next + 1) % maxRepeats
}

// replaced is conn.Events.Replaced.
func (e *Engine) replaced() {
	e.subs.Reconnect()
	now := e.Age()
	since := now - repeatFor
	e.releases.mu.Lock()
	last := slices.Clone(e.releases.last)
	e.releases.replaced = max(now, 1)
	e.releases.mu.Unlock()
	for _, one := range last {
		if one.at >= since {
			one.repeat()
		}
	}
}

// doubtful is conn.Events.Doubtful: what is held is renewed at once, so that a holder is not the last to
// learn that its server has forgotten it.
func (e *Engine) doubtful(d conn.Doubt) { e.Renewals.Doubt(d, d.Concerns) }
