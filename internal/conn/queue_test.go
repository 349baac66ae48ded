// Callers leave the queue of a node without a cost for each other.

package conn

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// If a caller that leaves had to search the whole queue, this test would take minutes.
func TestManyCallersThatLeaveTheQueueDoNotWaitForEachOther(t *testing.T) {
	const callers = 300_000
	n := newNode("", &redis.Options{})
	n.queue = make([]*request, callers)
	for i := range n.queue {
		n.queue[i] = new(request)
	}
	begun := time.Now()
	for _, r := range append([]*request(nil), n.queue...) {
		if !r.withdraw() {
			t.Fatal("was not withdrawn")
		}
		n.forget()
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("%d callers took %v to leave", callers, took)
	}
	if len(n.queue) != 0 || n.dead != 0 {
		t.Errorf("%d are left in the queue, %d counted", len(n.queue), n.dead)
	}
}

func TestACallerThatStaysInTheQueueKeepsItsPlace(t *testing.T) {
	n := newNode("", &redis.Options{})
	var stay []*request
	for i := range 100 {
		r := new(request)
		n.queue = append(n.queue, r)
		if i%7 == 0 {
			stay = append(stay, r)
		}
	}
	for i, r := range append([]*request(nil), n.queue...) {
		if i%7 != 0 && r.withdraw() {
			n.forget()
		}
	}
	if len(n.queue) > 2*len(stay)+1 {
		t.Errorf("%d are in the queue, and %d of them wait", len(n.queue), len(stay))
	}
	next := 0
	for _, r := range n.queue {
		if !r.isWithdrawn() {
			if r != stay[next] {
				t.Errorf("number %d in the queue is another", next)
			}
			next++
		}
	}
	if next != len(stay) {
		t.Errorf("%d wait, want %d", next, len(stay))
	}
}
