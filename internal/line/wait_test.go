// Waiters stand in the local line, and only the head runs the wait loop against Redis.

package line

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Waiters are served in their order, each at the release. A waiter that leaves, wherever it stands, does not
// change the order of the others.
func TestAHeadThatLeavesHandsOn(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, s *redistest.MiniServer) {
		x := taken()
		all := queue(l, 8, waiting(x, -1))
		all[0].leave(t) // the head
		all[3].leave(t) // in the middle
		all[4].leave(t) // and the one behind it
		all[7].leave(t) // the tail
		all[1].leave(t) // the second head
		late := queue(l, 1, waiting(x, -1))[0]
		rest := []*caller{all[2], all[5], all[6], late}
		for i, next := range rest {
			x.release(s)
			mustBeNext(t, next, rest[i+1:]...)
			time.Sleep(100 * time.Millisecond)
		}
		// The line has ended; a new one begins.
		again := queue(l, 2, waiting(x, -1))
		x.release(s)
		mustBeNext(t, again[0], again[1])
		x.release(s)
		mustBeNext(t, again[1])
	})
}

// The head receives the message of a release and leaves before it acts on the message. There is no
// second message, and still the next waiter is granted the thing at once.
func TestTheSignalOfAWaiterThatLeavesIsNotLost(t *testing.T) {
	for _, ahead := range []int{0, 1, 3} { // grants within this process before
		inBubble(t, func(t *testing.T, l *client, s *redistest.MiniServer) {
			x := taken()
			all := queue(l, ahead, waiting(x, time.Hour))
			// The leaver's context is cancelled while it asks.
			leaver := waiting(x, time.Hour)
			var left *caller
			armed := false
			leaver.Asker = asker(func(ctx context.Context, ask Ask) (Answer, error) {
				if armed {
					left.cancel()
					return Answer{}, context.Canceled
				}
				return x.try(time.Hour)(ctx, ask)
			})
			left = wait(l, leaver)
			next := wait(l, waiting(x, time.Hour))
			for _, w := range all {
				x.release(s)
				mustBeNext(t, w, next)
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(10 * time.Millisecond)
			armed = true
			x.release(s)
			<-left.done
			redistest.Is(t, "Wait", left.err, context.Canceled)
			mustBeNext(t, next) // in no time
		})
	}
}

// The poll finds a release without a message, however much longer the hold would have lasted.
func TestPollFindsAnUntoldRelease(t *testing.T) {
	for _, end := range []time.Duration{-1, PollBound + time.Millisecond, 5 * PollBound / 2, time.Hour} {
		inBubble(t, func(t *testing.T, l *client, s *redistest.MiniServer) {
			x := taken()
			if end > 0 {
				x.take(time.Now().Add(end))
			}
			w := wait(l, waiting(x, -1))
			time.Sleep(time.Millisecond)
			begun := time.Now()
			x.free()
			<-w.done
			if took := w.ended.Sub(begun); w.err != nil || took > PollBound {
				t.Errorf("holder for %v: granted %v after an untold release (%v), want at most %v", end, took, w.err, PollBound)
			}
		})
	}
}

// A request is a poll if nothing has told of a change: no message, no end of a lease. The polls of a
// Client fall on a grid, so that those for many names go out together.
func TestWhatIsAPoll(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, s *redistest.MiniServer) {
		type request struct {
			poll bool
			at   time.Time
		}
		x, requests := new(thing), make(chan request, 100)
		next := func() request {
			t.Helper()
			synctest.Wait()
			return <-requests
		}
		w := waiting(x, -1)
		w.Asker = asker(func(ctx context.Context, ask Ask) (Answer, error) {
			requests <- request{ask.Poll, time.Now()}
			return x.try(-1)(ctx, ask)
		})
		x.take(time.Now().Add(time.Minute))
		waiter := wait(l, w)
		for what := range 2 { // as it comes, and as it has subscribed
			if next().poll {
				t.Errorf("request %d is a poll", what)
			}
		}
		last := next()
		for range 3 {
			poll := next()
			if gap := poll.at.Sub(last.at); !poll.poll || gap%pollGrid != 0 {
				t.Errorf("the next one is a poll: %v, %v after the one before", poll.poll, gap)
			}
			last = poll
		}
		x.take(time.Now().Add(time.Second))
		s.Publish(channel, "0")
		if next().poll {
			t.Error("what a message brings about is a poll")
		}
		if next().poll {
			t.Error("what the end of a lease brings about is a poll")
		}
		if <-waiter.done; waiter.err != nil {
			t.Error(waiter.err)
		}
	})
}

// A waiter finds out by a poll what a message should have told it. It has the dead connection
// replaced, and the next waiter is told by a message again.
func TestAMissedMessageReplacesTheConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *client, s *redistest.MiniServer) {
		proxy := s.Proxy()
		l := newClient(t, proxy.Client(t))
		defer l.Close()
		x := taken()
		w := wait(l, waiting(x, -1))
		proxy.BlackHole()
		begun := time.Now()
		x.release(s)
		<-w.done
		if took := w.ended.Sub(begun); took == 0 || took > PollBound {
			t.Errorf("granted %v after an unheard release, want a poll", took)
		}

		time.Sleep(1100 * time.Millisecond) // the time in which the PING gets no answer
		next := wait(l, waiting(x, -1))
		x.release(s)
		mustBeNext(t, next)
		proxy.Cut() // or the server would never notice that the silent connection is dead
	})
}

// No message tells of the end of a lease that runs out. The head knows that end to the millisecond
// and wakes then.
func TestWakesWhenTheHoldersLeaseEnds(t *testing.T) {
	const ms = time.Millisecond
	for _, left := range []time.Duration{ms, 5 * ms, 123 * ms, 700 * ms, 5*time.Second + 17*ms} {
		inBubble(t, func(t *testing.T, l *client, s *redistest.MiniServer) {
			x := new(thing)
			begun := time.Now()
			x.take(begun.Add(left))
			all := queue(l, 3, waiting(x, left))
			for i, w := range all { // the later waiters wait behind holders of this process
				<-w.done
				want := begun.Add(time.Duration(i+1) * left)
				if late := w.ended.Sub(want); w.err != nil || late < 0 || late > ms {
					t.Errorf("lease of %v: %d was granted %v after its end (%v)", left, i, late, w.err)
				}
			}
		})
	}
}

// A head that has learnt when the lease ends leaves. The next head must know that end as well.
func TestNextHeadKnowsTheHoldersLease(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, s *redistest.MiniServer) {
		x := new(thing)
		begun := time.Now()
		x.take(begun.Add(300 * time.Millisecond))
		all := queue(l, 3, waiting(x, 200*time.Millisecond))
		<-all[0].done // granted at 300 ms, for 200 ms
		time.Sleep(50 * time.Millisecond)
		x.take(begun.Add(700 * time.Millisecond)) // renewed or taken, without a message
		time.Sleep(200 * time.Millisecond)
		all[1].leave(t)
		<-all[2].done
		if late := all[2].ended.Sub(begun.Add(700 * time.Millisecond)); late < 0 || late > time.Millisecond {
			t.Errorf("granted %v after the end of the lease", late)
		}
	})
}

// A time to live that rounds to nothing, again and again, does not make the head ask without a
// pause.
func TestWaitingIsNeverHot(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, s *redistest.MiniServer) {
		tries := 0
		w := wait(l, &Want{Key: "k", Channel: channel, Asker: asker(func(context.Context, Ask) (Answer, error) {
			tries++
			return Answer{}, nil
		})})
		time.Sleep(time.Second)
		w.leave(t)
		if tries > 1010 {
			t.Errorf("%d tries in a second", tries)
		}
	})
}

// An error of one waiter's try ends that wait and no other.
func TestFailedTryIsItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, s *redistest.MiniServer) {
		x := taken()
		boom := errors.New("boom")
		fail := false
		failing := waiting(x, -1)
		failing.Asker = asker(func(ctx context.Context, ask Ask) (Answer, error) {
			if fail {
				return Answer{}, boom
			}
			return x.try(-1)(ctx, ask)
		})
		first := wait(l, failing)
		second := wait(l, waiting(x, -1))
		fail = true
		x.release(s)
		mustBeNext(t, second)
		redistest.Is(t, "Wait", first.err, boom)
		if errors.Is(first.err, errs.Busy) {
			t.Errorf("%v matches errs.Busy", first.err)
		}
	})
}

// Close ends every wait at once, also of those whose process keeps one place for all.
func TestCloseEndsEveryWait(t *testing.T) {
	for what, all := range map[string]func(l *client) []*caller{
		"no queue": func(l *client) []*caller {
			x := taken()
			return queue(l, 5, waiting(x, -1))
		},
		"a place of the process": func(l *client) []*caller {
			_, waiters := inLine(l, 100)
			return waiters
		},
	} {
		inBubble(t, func(t *testing.T, l *client, s *redistest.MiniServer) {
			waiters := all(l)
			begun := time.Now()
			l.Close()
			for i, w := range waiters {
				<-w.done
				redistest.Is(t, "Wait", w.err, errs.Closed)
				if took := w.ended.Sub(begun); took != 0 {
					t.Errorf("%s: %d returned after %v", what, i, took)
				}
			}
			held := taken()
			_, err := l.Wait(t.Context(), waiting(held, -1))
			redistest.Is(t, "Wait", err, errs.Closed)
		})
	}
}

// When the Client closes, those behind the head do not wait for the answer to the head's request.
func TestCloseEndsTheWaitBehindAHeadThatAsks(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, s *redistest.MiniServer) {
		x := taken()
		answered, slow := make(chan struct{}), false
		head := waiting(x, -1)
		held := head.Asker
		head.Asker = asker(func(ctx context.Context, ask Ask) (Answer, error) {
			if slow {
				<-answered
			}
			return held.Try(ctx, ask)
		})
		first := wait(l, head)
		second := wait(l, waiting(x, -1))
		slow = true
		s.Publish(channel, "0")
		synctest.Wait() // the head asks
		l.Close()
		<-second.done
		redistest.Is(t, "Wait", second.err, errs.Closed)
		if first.isDone() {
			t.Error("the head did not ask")
		}
		close(answered)
		<-first.done
		redistest.Is(t, "Wait", first.err, errs.Closed)
	})
}

// A shared grant wakes the next waiter: a message that frees three permits serves three of five. A common
// grant is one for all waiters behind it: a latch opens, one waiter asks, and all go on.
func TestSharedAndCommonGrants(t *testing.T) {
	for kind, tc := range map[Grant]struct{ free, served, tries int }{Shared: {3, 3, 4}, Common: {1, 5, 1}} {
		inBubble(t, func(t *testing.T, l *client, s *redistest.MiniServer) {
			var mu sync.Mutex
			left, tries := 0, 0
			all := queue(l, 5, &Want{Key: "k", Channel: channel, Grant: kind, Asker: asker(func(context.Context, Ask) (Answer, error) {
				mu.Lock()
				defer mu.Unlock()
				tries++
				granted := left > 0
				left = max(left-1, 0)
				return Answer{Granted: granted, Held: NoKnownEnd}, nil
			})})
			mu.Lock()
			left, tries = tc.free, 0
			mu.Unlock()
			s.Publish(channel, "0")
			synctest.Wait()
			for i, one := range all {
				if one.isDone() != (i < tc.served) || one.isDone() && one.err != nil {
					t.Errorf("grant %v: %d is done: %v, %v", kind, i, one.isDone(), one.err)
				}
			}
			redistest.Equal(t, tries, tc.tries, "%d tries for one message, want %d (grant %v)", tc.tries, kind)
			for _, one := range all[tc.served:] {
				one.leave(t)
			}
		})
	}
}

// A caller that asks for less overtakes a waiter that asks for more, until that waiter has waited
// long enough.
func TestHeavyWaiterIsNotPassedForEver(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, s *redistest.MiniServer) {
		free := new(thing)
		light := &Want{Key: "k/1", Group: "k", Channel: channel, Asker: free.try(-1), Grant: Shared, Weight: 1}
		big := taken()
		heavy := &Want{Key: "k/5", Group: "k", Channel: channel, Asker: big.try(-1), Grant: Shared, Weight: 5}
		other := &Want{Key: "j/1", Group: "j", Channel: channel, Asker: free.try(-1), Grant: Shared, Weight: 1}

		waits := wait(l, heavy)
		if out, err := l.Wait(t.Context(), light); out.Waited || err != nil {
			t.Errorf("at once: waited %v, %v", out.Waited, err)
		}
		time.Sleep(patience + time.Millisecond)
		free.free()
		stopped := wait(l, light)
		time.Sleep(10 * time.Second)
		if stopped.isDone() {
			t.Fatal("passed one who has waited long")
		}
		if out, err := l.Wait(t.Context(), other); out.Waited || err != nil {
			t.Errorf("of another group: waited %v, %v", out.Waited, err)
		}
		free.free()
		begun := time.Now()
		waits.leave(t)
		<-stopped.done
		if took := stopped.ended.Sub(begun); stopped.err != nil || took != 0 {
			t.Errorf("went on %v after the heavy one had left (%v)", took, stopped.err)
		}
	})
}
