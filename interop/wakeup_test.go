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

// wakeUps are the pairs of what one language holds and what the other waits for.
var wakeUps = []struct {
	name       string
	since      string
	hold, want side
	setUp      func(w *world, client *holdfast.Client, name string)
}{
	{name: "Mutex / RLock", since: Oldest, hold: mutexSide, want: mutexSide},
	{name: "Mutex / RFencedLock", since: "3.19", hold: fencedSide, want: fencedSide},
	{name: "Mutex / RLock that is not reentrant", since: "4.4", hold: onceSide, want: onceSide},
	{name: "FairMutex / RLock", since: Last3, hold: fairSide, want: fairSide},
	{name: "RWMutex / RReadWriteLock, writers", since: Last3, hold: writeSide, want: writeSide},
	{name: "RWMutex / RReadWriteLock, reader waits", since: Last3, hold: writeSide, want: readSide},
	{name: "RWMutex / RReadWriteLock, writer waits", since: Last3, hold: readSide, want: writeSide},
	{name: "Semaphore(1) / RSemaphore", since: Last3, hold: semaphoreSide, want: semaphoreSide, setUp: setSemaphore(1)},
	{name: "PermitSemaphore(1) / RPermitExpirable...", since: Last3, hold: permitSide, want: permitSide, setUp: setPermits(1)},
}

var (
	mutexSide     = side{java: "lock", take: takeMutex}
	fencedSide    = side{java: "fenced", take: takeFencedMutex}
	onceSide      = side{java: "nonreentrant", take: takeMutex}
	fairSide      = side{java: "lock", take: takeFairMutex}
	readSide      = side{java: "read", take: takeRead}
	writeSide     = side{java: "write", take: takeWrite}
	semaphoreSide = side{java: "semaphore", take: takeSemaphore}
	permitSide    = side{java: "permits", take: takePermit}
)

func TestAReleaseWakesTheOtherLanguage(t *testing.T) {
	for _, c := range wakeUps {
		t.Run(c.name, func(t *testing.T) {
			everywhere(t, c.since, func(t *testing.T, w *world) {
				client, thread := w.holdfast(), w.redisson("r").Thread("t")
				if c.setUp != nil {
					c.setUp(w, client, "woken")
				}
				rounds := redistest.Count(t, 1000)
				w.wokenInGo(c.name, c.hold, c.want, client, thread, rounds)
				w.wokenInJava(c.name, c.hold, c.want, client, thread, rounds)
			})
		})
	}
}

// javaTake returns the command that makes a Java thread take something of that kind.
func javaTake(kind, name string) (command string, args []any) {
	switch kind {
	case "semaphore":
		return "semaphore.acquire", []any{name}
	case "permits":
		return "permits.acquire", []any{name, 30_000}
	default:
		return kind + ".lock", []any{name}
	}
}

// javaGiveBack returns the command that gives it back. answer is the answer to the command that
// took it.
func javaGiveBack(kind, name, answer string) (command string, args []any) {
	switch kind {
	case "semaphore":
		return "semaphore.release", []any{name}
	case "permits":
		return "permits.release", []any{name, answer}
	default:
		return kind + ".unlock", []any{name}
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
		command, args := javaTake(hold.java, "woken")
		held := w.do(thread, command, args...)
		sleeps := w.asked(scripts, 2)
		granted := make(chan grant, 1)
		go func() {
			giveBack, err := take(w.ctx)
			granted <- grant{time.Now(), giveBack, err}
		}()
		sleeps()
		released := time.Now()
		command, args = javaGiveBack(hold.java, "woken", held)
		w.do(thread, command, args...)
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
		command, args := javaTake(want.java, "woken")
		waiting := thread.Go(command, args...)
		sleeps()
		released := time.Now()
		redistest.Must(w.t, giveBack(w.ctx))
		held := w.result(waiting)
		w.woken(pair, goToJava, round, waiting.At().Sub(released))
		command, args = javaGiveBack(want.java, "woken", held)
		w.do(thread, command, args...)
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
