// A waiter of one language is in as soon as the other language's holder has left.

package interop

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// wakeUpWithin bounds the wake-up in 99 of 100 cases. It is far below a poll and below any lease.
const wakeUpWithin = 100 * time.Millisecond

// byMessage bounds a single wake-up of one or of many waiters, which has no percentile. A wake-up
// by a poll would take up to a second.
const byMessage = 500 * time.Millisecond

func TestAReleaseWakesTheOtherLanguage(t *testing.T) {
	for _, p := range pairs {
		if p.deaf {
			continue
		}
		for _, hold := range p.sides {
			for _, want := range p.sides {
				name := p.name
				if len(p.sides) > 1 {
					name += ", " + want.java + " waits"
				}
				// Those that may be in together do not wait for each other. The writers are a pair of their own.
				if hold.weight <= want.room || len(p.sides) > 1 && hold.java == want.java {
					continue
				}
				t.Run(name, func(t *testing.T) {
					onServers(t, p.since, long() || p.clustered, func(t *testing.T, w *world) {
						client, thread := w.holdfast(), w.redisson("r").Thread("t")
						if p.setUp != nil {
							p.setUp(w, client, "woken")
						}
						rounds := redistest.Count(t, 1000)
						w.wokenInGo(name, hold, want, client, thread, rounds)
						w.wokenInJava(name, hold, want, client, thread, rounds)
					})
				})
			}
		}
	}
}

// takeInJava makes a Java thread take something.
func (s side) takeInJava(th Thread, name string) *Call {
	switch s.java {
	case "semaphore":
		return th.Go("semaphore.acquire", name)
	case "permits":
		return th.Go("permits.acquire", name, 30_000)
	default:
		return th.Go(s.java+".lock", name)
	}
}

// giveBackInJava makes it give that back. answer is the answer to the call that took it.
func (s side) giveBackInJava(th Thread, name, answer string) *Call {
	switch s.java {
	case "semaphore":
		return th.Go("semaphore.release", name)
	case "permits":
		return th.Go("permits.release", name, answer)
	default:
		return th.Go(s.java+".unlock", name)
	}
}

// wokenInGo makes Java hold and Go wait.
func (w *world) wokenInGo(pair string, hold, want side, client *holdfast.Client, thread Thread, rounds int) {
	w.t.Helper()
	type grant struct {
		at       time.Time
		giveBack func(context.Context) error
		err      error
	}
	take := want.take(client, "woken")
	for round := range rounds + warmUps {
		held := w.result(hold.takeInJava(thread, "woken"))
		sleeps := w.asked(scripts, 2)
		granted := make(chan grant, 1)
		go func() {
			giveBack, err := take(w.ctx)
			granted <- grant{time.Now(), giveBack, err}
		}()
		sleeps()
		released := time.Now()
		w.result(hold.giveBackInJava(thread, "woken", held))
		g := ended(w.t, "the waiter's grant", patience, granted)
		if g.err != nil {
			w.t.Fatal(g.err)
		}
		w.woken(pair, javaToGo, round, g.at.Sub(released))
		redistest.Must(w.t, g.giveBack(w.ctx))
	}
	w.promptly(pair, javaToGo)
}

// wokenInJava makes Go hold and Java wait.
func (w *world) wokenInJava(pair string, hold, want side, client *holdfast.Client, thread Thread, rounds int) {
	w.t.Helper()
	take := hold.take(client, "woken")
	for round := range rounds + warmUps {
		giveBack, err := take(w.ctx)
		redistest.Must(w.t, err)
		sleeps := w.asked(scripts, 2)
		waiting := want.takeInJava(thread, "woken")
		sleeps()
		released := time.Now()
		redistest.Must(w.t, giveBack(w.ctx))
		held := w.result(waiting)
		w.woken(pair, goToJava, round, waiting.At().Sub(released))
		w.result(want.giveBackInJava(thread, "woken", held))
	}
	w.promptly(pair, goToJava)
}

// The first warmUps rounds do not count: Java loads its classes, and the servers do not have the
// scripts yet.
const warmUps = 5

func (w *world) woken(pair, direction string, round int, after time.Duration) {
	if round < warmUps {
		return
	}
	measured.of(row{pair, w.version, w.topology, direction}, func(v *values) {
		v.wakeUps = append(v.wakeUps, after)
	})
}

// promptly fails the test if wake-ups took too long.
func (w *world) promptly(pair, direction string) {
	w.t.Helper()
	measured.of(row{pair, w.version, w.topology, direction}, func(v *values) {
		if p99 := percentile(v.wakeUps, 0.99); p99 > prompt(wakeUpWithin) {
			w.t.Errorf("%s: p99 of %d wake-ups %v, p50 %v; want %v", direction, len(v.wakeUps), p99,
				percentile(v.wakeUps, 0.50), wakeUpWithin)
		}
	})
}

// A nested release sends no message: there is one message for each time that the lock becomes free,
// whichever language releases it.
func TestANestedReleaseTellsNobody(t *testing.T) {
	everywhere(t, Oldest, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		m := w.holdfast().Mutex("nested")
		const channel = "redisson_lock__channel:{nested}"
		subscribe, publish := w.rdb.Subscribe, w.rdb.Publish
		if w.topology == "cluster" {
			subscribe, publish = w.rdb.SSubscribe, w.rdb.SPublish
		}
		messages := subscribe(w.ctx, channel)
		defer messages.Close()
		redistest.Must(t, redistest.Err(messages.Receive(w.ctx)))

		outer := w.grant(w.ctx, m.Lock)
		inner := w.grant(outer.Context(w.ctx), m.Lock)
		for _, l := range []*holdfast.Lease{inner, outer} {
			redistest.Must(t, l.Release(w.ctx))
		}
		w.do(thread, "lock.lock", "nested")
		w.do(thread, "lock.lock", "nested")
		w.do(thread, "lock.unlock", "nested")
		w.do(thread, "lock.unlock", "nested")

		redistest.Must(t, publish(w.ctx, channel, "end").Err())
		got := ""
		for {
			message, err := messages.ReceiveMessage(w.ctx)
			redistest.Must(t, err)
			got += message.Payload + " "
			if message.Payload == "end" {
				break
			}
		}
		if want := "0 0 end "; got != want {
			t.Errorf("messages %q, want %q", got, want)
		}
		if fmt.Sprint(w.hash("nested")) != "map[]" {
			t.Errorf("left: %v", w.hash("nested"))
		}
	})
}
