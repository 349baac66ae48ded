// The local line follows the queue that Redis keeps, and how long it waits is what the documents say.

package line

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// placed returns a Want with a place of its own, and what Redis answered first.
func placed(id string, seq int64) (*Want, Answer) {
	return &Want{Key: "k", Place: Place{Grain: PerWaiter, ID: id}}, Answer{Seq: seq}
}

// ids returns the ids of the line's waiters, from its head.
func ids(l *Lines, key string) []string {
	var all []string
	for me := l.byKey[key].head; me != nil; me = me.next {
		all = append(all, me.want.Place.ID)
	}
	return all
}

// Waiters stand in Redis's order, whatever the order in which the answers came. But no waiter is
// put before the head.
func TestLineFollowsRedissOrder(t *testing.T) {
	var l Lines
	for _, seq := range []int64{5, 9, 7, 3, 8, 10, 4} {
		l.join(placed(fmt.Sprint(seq), seq))
	}
	if got, want := ids(&l, "k"), []string{"5", "3", "4", "7", "8", "9", "10"}; !slices.Equal(got, want) {
		t.Errorf("the line is %v, want %v", got, want)
	}
	for me := l.byKey["k"].tail; me.prev != nil; me = me.prev {
		if me.prev.next != me {
			t.Fatalf("the line is broken at %s", me.want.Place.ID)
		}
	}
}

// headOf returns the head of a line with that many waiters behind it.
func headOf(l *Lines, behind int) *waiter {
	head := l.join(placed("head", 0))
	for i := range behind {
		l.join(placed(fmt.Sprint(i), int64(i+1)))
	}
	return head
}

// The head's requests keep alive the places behind it: each of them once within a beat, and at most
// as many at a time as one request has room for.
func TestHeadKeepsThePlacesBehindItAlive(t *testing.T) {
	var l Lines
	const behind = 2*beats + 10
	head := headOf(&l, behind)
	kept := make(map[string]bool)
	for _, want := range []struct {
		n    int
		more bool
	}{{beats, true}, {beats, true}, {10, false}, {0, false}} {
		ask, more, _ := head.policy().ask(&l, head)
		if more != want.more || len(ask.Behind) != want.n {
			t.Errorf("%d at a time, more %v, want %d, %v", len(ask.Behind), more, want.n, want.more)
		}
		for _, id := range ask.Behind {
			kept[id] = true
		}
	}
	redistest.Equal(t, len(kept), behind, "%d of %d were kept alive", behind)
	l.byKey["k"].beaten = time.Now().Add(-beat)
	if ask, _, _ := head.policy().ask(&l, head); len(ask.Behind) != beats {
		t.Errorf("after a beat %d are kept alive, want %d", len(ask.Behind), beats)
	}
}

// A head is granted the thing before it has kept all places behind it. The next head goes on with
// those that are left at once.
func TestTheNextHeadGoesOnKeepingPlaces(t *testing.T) {
	var l Lines
	head := headOf(&l, 2*beats+10)
	head.policy().ask(&l, head)
	q := head.line
	q.heldUntil = time.Now().Add(time.Minute) // as after a grant
	l.leave(head)
	next := q.head
	redistest.Equal(t, next.policy().first(next).length, 0, "the next head asks in %v")
	next.policy().ask(&l, next)
	if ask, more, _ := next.policy().ask(&l, next); len(ask.Behind) != 10 || more {
		t.Errorf("%d are left, more %v", len(ask.Behind), more)
	}
	if quiet := next.policy().first(next).length; quiet < time.Second {
		t.Errorf("with nothing left, it asks in %v", quiet)
	}
}

// Only the waiters that must ask by themselves are nudged.
func TestNudge(t *testing.T) {
	var l Lines
	places := make([]*waiter, 5)
	for i := range places {
		places[i] = l.join(placed(fmt.Sprint(i), int64(i)))
	}
	head := places[0]
	answer := Answer{Nudge: []string{"1", "3", "gone"}}
	for range 2 { // a second nudge changes nothing
		if !head.policy().answered(&l, head, Ask{}, answer, nil) {
			t.Error("nobody was nudged")
		}
	}
	for i, me := range places[1:] {
		nudged, want := false, i+1 == 1 || i+1 == 3
		select {
		case <-me.nudged:
			nudged = true
		default:
		}
		redistest.Equal(t, nudged, want, "%v, want %v (%d was nudged)", want, i+1)
		if len(me.nudged) != 0 {
			t.Errorf("%d was nudged twice", i+1)
		}
	}
}

func TestAwaitedIsForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, _ *redistest.MiniServer) {
		if l.Awaited("k") {
			t.Error("awaited, with nobody there")
		}
		l.NoteAwaited("k") // at the age of 0
		time.Sleep(lately - time.Millisecond)
		if !l.Awaited("k") {
			t.Error("forgotten at once")
		}
		time.Sleep(2 * time.Millisecond)
		if l.Awaited("k") {
			t.Errorf("not forgotten after %v", lately)
		}
	})
}

func TestTheDocumentsSayHowLongAWaiterWaits(t *testing.T) {
	doctest.Says(t, PollBound, "README.md", "once for all its goroutines: every {}")
	doctest.Says(t, PollBound, "docs/guarantees.md", "at least every {}")
	doctest.Says(t, PollBound, "docs/architecture.md", "or for {}", "at least every {}")
	doctest.Says(t, PollBound, "docs/fairlock.md", "asks every {}")
	doctest.Says(t, 2*PollBound, "docs/fairlock.md", "again about\nevery {}", "every {} at the latest", "stand still, for {}")
	doctest.Says(t, beats, "docs/fairlock.md", "{} of them by one command")
	doctest.Says(t, 2*PollBound, "docs/architecture.md", "{} after the last time")
	doctest.Says(t, PollBound, "docs/faq.md", "up to {}")
	doctest.Says(t, PollBound, "docs/redisson-interop.md", "by poll, {}", "within {}")
	doctest.Says(t, PollBound, "docs/security.md", "by asking every {}")
	doctest.Says(t, PollBound, "latch/latch.go", "get ErrDeleted within {}")
	doctest.Says(t, beats, "docs/architecture.md", "{} at a time")
	doctest.Says(t, openFor, "docs/architecture.md", "left to them for {}")
	doctest.Says(t, openFor, "docs/keyspace.md", "for {}")
	doctest.Says(t, openFor, "docs/redisson-interop.md", "left to Java for {}")
	doctest.Says(t, PollBound, "docs/mutex.md", "a request every {}", "every {} at the latest")
	doctest.Says(t, PollBound, "docs/rwmutex.md", "every {} at the latest")
	doctest.Says(t, PollBound, "docs/semaphore.md", "asks every {}")
	doctest.Says(t, PollBound, "docs/latch.md", "asks every {}")
	doctest.Says(t, PollBound, "docs/managed.md", "waiters ask every {}")
	doctest.Says(t, PollBound, "docs/redisson-side-by-side.md", "and every {}", "looks within {}")
	doctest.Says(t, PollBound, "docs/hand-over.md", "at least every {}", "within {}")
	doctest.Says(t, openFor, "docs/hand-over.md", "leaves the lock to them for {}")
	doctest.Says(t, lately, "docs/hand-over.md", "in the last {}")
	doctest.Says(t, lately, "docs/mutex.md", "heard of a waiter within the last {}")
	doctest.Says(t, patience, "docs/semaphore.md", "has waited for {}")
}
