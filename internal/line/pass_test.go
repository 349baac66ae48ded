// A lease is passed on within the process, and the seat stays in Redis meanwhile. Waiters that stand behind others of their
// process ask Redis for nothing.

package line

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// alike are the terms of every waiter in these tests.
var alike = Terms{Lease: time.Minute}

// server is the queue in Redis, as far as one process sees it: which owners have a place, and which
// owner asked last. Another process holds the thing until it is free.
type server struct {
	thing
	seats map[int64]bool
	asked []int64
	doubt bool // the next answer is not heard
}

// waiting returns a Want in x for the owner with that number.
func (x *server) waiting(owner int64, terms Terms) *Want {
	held := x.try(time.Hour)
	return &Want{
		Key:   "k",
		Told:  told{},
		Place: Place{Grain: PerProcess, Owner: owner, Terms: terms},
		Asker: asker(func(ctx context.Context, ask Ask) (Answer, error) {
			a, err := held(ctx, ask)
			x.mu.Lock()
			defer x.mu.Unlock()
			if x.doubt {
				x.doubt = false
				return Answer{Doubt: true}, context.DeadlineExceeded
			}
			if !ask.InQueue || err != nil {
				return a, err
			}
			x.asked = append(x.asked, ask.Owner)
			a.Kept = time.Now()
			delete(x.seats, ask.Owner)
			seated, seq := ask.Owner, &a.Seq
			if a.Granted {
				seated, seq = ask.Next, &a.NextSeq
			}
			if seated != 0 {
				x.seats[seated], *seq = true, 1000+seated
			}
			return a, nil
		}),
	}
}

// seated returns the owner that has a seat in x, which must be the only one; 0: none has.
func (x *server) seated(t *testing.T) (owner int64) {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.seats) > 1 {
		t.Errorf("Redis has the seats %v", x.seats)
	}
	for owner = range x.seats {
	}
	return owner
}

// inLine starts n waiters for a thing that another process holds. Their owners are numbered from
// 101.
func inLine(l *client, n int) (*server, []*caller) {
	x := &server{thing: thing{held: true}, seats: make(map[int64]bool)}
	waiters := make([]*caller, n)
	for i := range n {
		waiters[i] = wait(l, x.waiting(101+int64(i), alike))
	}
	time.Sleep(10 * time.Millisecond) // subscribed, and seated
	return x, waiters
}

// A lease is passed on to the waiters behind the head, in order, and their places in the line can be used
// again. It is passed to the head last. Redis is not asked. The seat stays, and the holder is to give it up.
func TestPassOn(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, _ *redistest.MiniServer) {
		x, heads := inLine(l, 1)
		before, passed := x.tried(), 0
		passTo := func(w *caller) {
			t.Helper()
			if passed++; !l.Pass("k", alike, passed) {
				t.Fatalf("pass %d failed", passed)
			}
			if mustBeNext(t, w); w.out.Passed != passed || w.out.Orphan != 0 {
				t.Fatalf("passed %v, and gives up %d; want %d, and none", w.out.Passed, w.out.Orphan, passed)
			}
		}
		for range 3 {
			first, second := wait(l, x.waiting(7, alike)), wait(l, x.waiting(8, alike))
			passTo(first)
			passTo(second)
		}
		passTo(heads[0])
		if l.Pass("k", alike, "it") {
			t.Error("passed to nobody")
		}
		if after := x.tried(); after != before {
			t.Errorf("Redis was asked %d times", after-before)
		}
		if owner := l.Abandon("k"); owner != 101 || !x.seats[owner] {
			t.Errorf("the seat is %d's, Redis has %v", owner, x.seats)
		}
		redistest.Equal(t, l.Abandon("k"), 0, "abandoned twice: %d")
	})
}

// A lease is not passed on to a waiter with other terms, and it does not skip that waiter.
func TestPassOnEqualTermsOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, _ *redistest.MiniServer) {
		inLine(l, 2)
		for _, terms := range []Terms{{}, {Lease: time.Second}, {Lease: time.Minute, MaxHold: time.Minute}} {
			if l.Pass("k", terms, "it") {
				t.Errorf("passed on %+v", terms)
			}
		}
	})
}

// A waiter that comes while its process holds the thing and has a seat takes that seat. It asks
// Redis only when Redis must hear of the seat again.
func TestSeatIsInherited(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, _ *redistest.MiniServer) {
		x, _ := inLine(l, 1)
		l.Pass("k", alike, "it")
		before, started := x.tried(), time.Now()
		second := wait(l, x.waiting(7, alike))
		time.Sleep(PollBound / 2)
		if after := x.tried(); after != before {
			t.Errorf("asked %d times in %v", after-before, time.Since(started))
		}
		time.Sleep(PollBound / 2)
		synctest.Wait()
		if after := x.tried(); after == before || x.asked[len(x.asked)-1] != 101 {
			t.Errorf("asked %d times, as %v", after-before, x.asked)
		}
		redistest.Equal(t, l.Abandon("k"), 0, "the seat of one who waits was abandoned: %d")
		second.cancel()
		<-second.done
		redistest.Equal(t, second.out.Orphan, 101, "the last to leave gives up the seat of %d, want 101")
	})
}

// A head that gives up leaves the seat to the next waiter, which asks at once. It does not leave
// the seat if a request of the head may still change something.
func TestAHeadThatGivesUpLeavesTheSeat(t *testing.T) {
	for _, doubt := range []bool{false, true} {
		inBubble(t, func(t *testing.T, l *client, s *redistest.MiniServer) {
			x, waiters := inLine(l, 2)
			orphan, as := int64(0), int64(101)
			if doubt {
				orphan, as = 101, 102
				x.mu.Lock()
				x.doubt = true
				x.mu.Unlock()
				s.Publish(channel, "0")
			} else {
				waiters[0].cancel()
			}
			<-waiters[0].done
			synctest.Wait()
			redistest.Equal(t, waiters[0].out.Orphan, orphan, "the head gives up the seat of %d, want %d (doubt %v)", orphan, doubt)
			redistest.Equal(t, x.asked[len(x.asked)-1], as, "the next asked as %d, want %d (doubt %v)", as, doubt)
			waiters[1].cancel()
			<-waiters[1].done
			redistest.Equal(t, waiters[1].out.Orphan, as, "the last gives up the seat of %d, want %d (doubt %v)", as, doubt)
		})
	}
}

// The request that is granted takes the next seat in the same step, if another waiter is in line.
func TestGrantTakesTheNextSeat(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, s *redistest.MiniServer) {
		x, waiters := inLine(l, 2)
		x.release(s)
		<-waiters[0].done
		next := x.seated(t)
		if next == 0 || next == 101 {
			t.Fatalf("the next seat is %d's", next)
		}
		before := x.tried()
		time.Sleep(PollBound / 2)
		if after := x.tried(); after != before {
			t.Errorf("the next asked %d times though it has its seat", after-before)
		}
		x.release(s)
		<-waiters[1].done
		redistest.Equal(t, x.asked[len(x.asked)-1], next, "the next asked as %d, want %d", next)
		redistest.Equal(t, x.seated(t), 0, "a seat is left for nobody, as %d")
	})
}

// A waiter that is cancelled in the moment in which the thing is passed to it either has the thing
// or was never passed it: the thing is not lost.
func TestPassedToAWaiterThatGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, _ *redistest.MiniServer) {
		for range 100 {
			x, waiters := inLine(l, 1)
			waiters[0].cancel()
			passed := l.Pass("k", alike, "it")
			<-waiters[0].done
			switch {
			case passed && (waiters[0].err != nil || waiters[0].out.Passed != "it" || l.Abandon("k") != 101):
				t.Fatalf("it was passed on, and is lost: %v", waiters[0].err)
			case !passed && (!errors.Is(waiters[0].err, errs.Busy) || waiters[0].out.Orphan != 101):
				t.Fatalf("it was not passed on: %v, orphan %d", waiters[0].err, waiters[0].out.Orphan)
			}
			x.free()
		}
	})
}

// A follower that is cancelled in the moment in which it is passed the thing either has it or
// leaves it to the head. A follower that becomes the head in that moment leaves the line as a head
// does, and takes the seat with it.
func TestFollowerGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, _ *redistest.MiniServer) {
		for range 100 {
			x, heads := inLine(l, 1)
			f := wait(l, x.waiting(7, alike))
			f.cancel()
			passed := l.Pass("k", alike, "it")
			<-f.done
			if has := f.out.Passed != nil; !passed || has != (f.err == nil) {
				t.Fatalf("passed on %v, has %v: %v", passed, f.out.Passed, f.err)
			} else if !has { // then the head has been passed it
				heads[0].cancel()
				if <-heads[0].done; heads[0].err != nil {
					t.Fatal("passed to nobody")
				}
				l.Abandon("k")
				continue
			}
			g := wait(l, x.waiting(8, alike))
			heads[0].cancel()
			g.cancel()
			<-heads[0].done
			if <-g.done; !errors.Is(g.err, errs.Busy) || !errors.Is(g.err, context.Canceled) {
				t.Fatalf("gave up as it came to lead: %v", g.err)
			}
			if owner := l.Abandon("k"); owner != 0 {
				t.Fatalf("the seat of %d is left", owner)
			}
		}
	})
}
