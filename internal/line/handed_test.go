// A waiter is handed the thing by a message, and a release takes the next waiter's seat.

package line

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// scene is a line whose first waiter has just been handed the thing by a message alone. A second
// waiter may still wait.
type scene struct {
	t       *testing.T
	l       *client
	s       *redistest.MiniServer
	x       *server
	waiters []*caller
}

// withHanded runs test with n waiters in line. The first of them has been handed the thing.
func withHanded(t *testing.T, n int, test func(sc *scene)) {
	t.Helper()
	inBubble(t, func(t *testing.T, l *client, s *redistest.MiniServer) {
		sc := &scene{t: t, l: l, s: s, x: &server{thing: thing{held: true}, seats: make(map[int64]bool)}}
		for i := range n {
			w := sc.x.waiting(101+int64(i), Terms{})
			w.Place.Lasts = 2 * PollBound
			sc.waiters = append(sc.waiters, wait(l, w))
		}
		time.Sleep(10 * time.Millisecond) // subscribed, and seated
		sc.hand(101, 7)
		sc.wantHanded(0, 101, 7)
		test(sc)
	})
}

func (sc *scene) hand(owner, token int64) {
	sc.t.Helper()
	sc.s.Publish(channel, fmt.Sprintf("%d %d 2500", owner, token))
	synctest.Wait()
}

// wantHanded fails the test unless the i-th waiter has the thing, as that owner.
func (sc *scene) wantHanded(i int, owner, token int64) {
	sc.t.Helper()
	mustBeNext(sc.t, sc.waiters[i])
	out := sc.waiters[i].out
	if out.Handed.Token != token || out.Handed.Owner != owner || out.Orphan != 0 {
		sc.t.Fatalf("waiter %d: %+v, want token %d as %d", i, out, token, owner)
	}
}

// wantAsked fails the test unless that owner was the last to ask.
func (sc *scene) wantAsked(owner int64) {
	sc.t.Helper()
	synctest.Wait()
	if last := sc.x.asked[len(sc.x.asked)-1]; last != owner {
		sc.t.Errorf("%d asked, want %d", last, owner)
	}
}

// A release takes the seat for the next waiter, and that waiter then asks nothing.
func TestTakeSeat(t *testing.T) {
	withHanded(t, 2, func(sc *scene) {
		before, seat := sc.x.tried(), sc.l.TakeSeat("k")
		if again := sc.l.TakeSeat("k"); seat == 0 || again != 0 {
			t.Fatalf("took the seats %d and %d", seat, again)
		}
		if sc.l.Seated("k", seat, 55) {
			t.Error("a seat that is waited for is to be given up")
		}
		time.Sleep(PollBound / 2)
		if after := sc.x.tried(); after != before {
			t.Errorf("the next asked %d times, though it has its seat", after-before)
		}
		sc.hand(seat, 8)
		sc.wantHanded(1, seat, 8)
		redistest.Equal(t, sc.l.TakeSeat("k"), 0, "nobody waits, and %d takes a seat")
	})
}

// If no release takes the next waiter's seat, that waiter soon takes it alone.
func TestTheNextTakesItsSeatItself(t *testing.T) {
	withHanded(t, 2, func(sc *scene) {
		time.Sleep(seatDelay)
		sc.wantAsked(102)
		redistest.Equal(t, sc.l.TakeSeat("k"), 0, "and %d takes another")
	})
}

// The next waiter may have left, or have been handed the thing, before the release is answered; or the release
// has not taken the seat.
func TestSeatedTooLate(t *testing.T) {
	withHanded(t, 2, func(sc *scene) {
		seat := sc.l.TakeSeat("k")
		sc.waiters[1].cancel()
		<-sc.waiters[1].done
		redistest.Equal(t, sc.waiters[1].out.Orphan, seat, "who leaves gives up the seat of %d, want %d", seat)
		if !sc.l.Seated("k", seat, 55) {
			t.Error("the release, which may have come later, does not give it up")
		}
	})
	withHanded(t, 2, func(sc *scene) {
		seat := sc.l.TakeSeat("k")
		sc.hand(seat, 8)
		sc.wantHanded(1, seat, 8)
		if sc.l.Seated("k", seat, 55) {
			t.Error("what is held would be given up")
		}
	})
	withHanded(t, 2, func(sc *scene) {
		if seat := sc.l.TakeSeat("k"); !sc.l.Seated("k", seat, 0) {
			t.Error("a release that was not answered may have taken it")
		}
		time.Sleep(PollBound)
		sc.wantAsked(102)
	})
}

// A message is not enough for a waiter that cannot rely on its place, nor for a waiter that must
// reserve a seat for the waiters behind it.
func TestHandedIsNotEnough(t *testing.T) {
	const message = "101 7 2500"
	for what, change := range map[string]func(me *waiter){
		"another owner":   func(me *waiter) { me.want.Place.Owner = 105 },
		"no length":       func(me *waiter) { me.want.Place.Lasts = 0 },
		"kept long ago":   func(me *waiter) { me.place.kept = time.Now().Add(-PollBound) },
		"in doubt":        func(me *waiter) { me.place.doubt = true },
		"passed already":  func(me *waiter) { me.outcome.Passed = "it" },
		"others to serve": func(me *waiter) { me.want.Place.Terms = alike },
	} {
		redistest.Bubble(t, func(t *testing.T) {
			l := new(Lines)
			head := func() *waiter {
				own := Place{Grain: PerWaiter, Owner: 101, Lasts: 2 * PollBound}
				return &waiter{
					line:  new(line),
					next:  &waiter{want: new(Want)},
					want:  &Want{Told: told{}, Place: own},
					place: place{kept: time.Now()},
				}
			}
			me := head()
			if change(me); l.handed(me, message) {
				t.Errorf("%s: it was enough", what)
			}
			if l.handed(head(), "101 7 100") {
				t.Error("too little was left")
			}
			me = head()
			if !l.handed(me, message) || me.outcome.Handed.Token != 7 {
				t.Errorf("%s: without that it was not", what)
			}
		})
	}
}

// A machine that has slept believes no message from before: its monotonic clock stood still, and the wall
// clock did not. This runs in real time, because virtual time has one clock; an hour makes delays harmless.
func TestAMachineThatSleptIsNotHandedAnything(t *testing.T) {
	p, now := Place{Lasts: time.Hour}, time.Now()
	slept := now.Add(-40 * time.Minute)
	// Package time offers no way to set the monotonic reading alone: it is the second word of a Time.
	*(*int64)(unsafe.Add(unsafe.Pointer(&slept), 8)) += int64(40 * time.Minute)
	if !p.enough(now, time.Hour) || p.enough(slept, time.Hour) {
		t.Errorf("awake: %v, after a sleep: %v; want the first alone", p.enough(now, time.Hour), p.enough(slept, time.Hour))
	}
}

// The doubt about a waiter's first request goes with the waiter into its line.
func TestADoubtFromTheFirstRequestStays(t *testing.T) {
	for grain, seated := range map[Grain]seat{PerWaiter: {}, PerProcess: {owner: 101, seq: 55, kept: time.Now()}} {
		for doubt, want := range map[bool]bool{false: true, true: false} {
			var l Lines
			own := Place{Grain: grain, Owner: 101, Lasts: 2 * PollBound}
			me := l.join(&Want{Key: "k", Told: told{}, Place: own}, Answer{Kept: time.Now(), Doubt: doubt})
			me.line.seat = seated
			redistest.Equal(t, l.handed(me, "101 7 2500"), want, "believed: %t (grain %d, doubt %v)", grain, doubt)
		}
	}
}

// A release has taken the head's seat. A head that was woken and has asked still asks again when
// the answer says so.
func TestAskedAgainInTime(t *testing.T) {
	withHanded(t, 2, func(sc *scene) {
		sc.x.take(time.Now().Add(5 * time.Millisecond)) // the other hold ends soon
		sc.s.Publish(channel, "0")
		synctest.Wait()
		begun := time.Now()
		<-sc.waiters[1].done
		if late := time.Since(begun); late > 10*time.Millisecond {
			t.Errorf("granted after %v what was free after 5 ms", late)
		}
	})
}

// A release must not give up a seat in which a head has asked, whatever the release was answered.
func TestSeatedWhileAskedIn(t *testing.T) {
	withHanded(t, 2, func(sc *scene) {
		seat := sc.l.TakeSeat("k")
		sc.s.Publish(channel, "0") // wakes the head, which asks as the owner of the seat
		synctest.Wait()
		orphan := sc.l.Seated("k", seat, 0)
		sc.x.release(sc.s)
		<-sc.waiters[1].done
		if orphan == (sc.x.asked[len(sc.x.asked)-1] == seat) {
			t.Errorf("given up: %v; held as that owner: %v; want one of the two", orphan, !orphan)
		}
	})
}

// Without the number of a place, Redis cannot tell whether the place was lost since a release took
// it. Then a message is not enough for a waiter that has asked in that place.
func TestAMessageIsNotBelievedInASeatWithoutANumber(t *testing.T) {
	for number, want := range map[int64]bool{0: false, 55: true} {
		redistest.Bubble(t, func(t *testing.T) {
			l := new(Lines)
			me := &waiter{
				line: new(line),
				want: &Want{Told: told{}, Place: Place{Grain: PerProcess, Owner: 101, Lasts: 2 * PollBound}},
			}
			me.line.head, me.line.seat = me, seat{state: seatTaking, owner: 105}
			me.line.seat.keep(number, time.Now())
			if ask, _, ok := me.policy().ask(l, me); !ok || ask.Owner != 105 {
				t.Fatalf("number %d: asks as %d, want 105", number, ask.Owner)
			}
			redistest.Equal(t, l.handed(me, "105 7 2500"), want, "believed: %t (number %d)", number)
		})
	}
}
