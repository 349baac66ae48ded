// This file is about how a waiter begins its lease when a release hands it the lock, by the message
// alone.

package holdfast_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

// handed makes another process release the lock, and so hand it to the waiter of one process.
// handed returns the waiter's lease, which has just been granted.
func handed(w *world, waiter *process, m lease.Locker) *lease.Lease {
	w.t.Helper()
	held := w.lock(w.t.Context(), w.process().mutex)
	next := w.goLock(w.t.Context(), m)
	w.at(w.now() + 1500*time.Millisecond) // the waiter has asked since, to keep its place
	waiter.mu.Lock()
	waiter.sent = nil
	waiter.mu.Unlock()
	w.release(held)
	l, err := next.result()
	if err != nil {
		w.t.Fatal(err)
	}
	if l.Token() <= held.Token() {
		w.t.Errorf("token %d after %d", l.Token(), held.Token())
	}
	return l
}

// A waiter that is handed the lock sends no request before its lease begins. If it goes on, it
// sends a request for its whole lease. Until then its lease ends with its place, as Redis has it.
func TestHanded_ByTheMessageAlone(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		for name, m := range map[string]lease.Locker{"mutex": p.mutex, "fair": p.FairMutex(name)} {
			l := handed(w, p, m)
			if n := p.runs(""); n != 0 {
				t.Errorf("%s: %d requests before it began", name, n)
			}
			w.wantHolder(l.Owner(), 0)
			lasts, ends := w.pttl("myLock"), time.Until(l.Deadline())
			if ends >= lasts || ends < lasts/2 {
				t.Errorf("%s: ends in %v, in Redis in %v", name, ends, lasts)
			}
			if count, err := p.mutex.HoldCount(t.Context(), l.Owner()); count != 1 {
				t.Errorf("%s: the count is %d (%v)", name, count, err)
			}
			w.at(w.now() + 200*time.Millisecond)
			if n := p.runs(""); n != 1+1 {
				t.Errorf("%s: %d requests, want a renewal, and the question for the count", name, n)
			}
			if lasts := w.pttl("myLock"); lasts < 29*time.Second || time.Until(l.Deadline()) < 29*time.Second {
				t.Errorf("%s: then it lasts %v, and ends in %v", name, lasts, time.Until(l.Deadline()))
			}
			w.release(l)
			w.wantFree()
		}
	})
}

// A holder that hears nothing more from Redis is told in time, although its lease was meant to be
// longer.
func TestHanded_ToldBeforeItEnds(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l := handed(w, p, p.mutex)
		lasts := w.pttl("myLock")
		p.unplug(true)
		<-l.Done()
		wantErr(t, l.Err(), holdfast.ErrLost)
		if left := w.pttl("myLock"); left <= 0 || left > lasts/2 {
			t.Errorf("told when %v were left of %v", left, lasts)
		}
		p.unplug(false)
		w.at(w.now() + 5*time.Second)
		w.wantFree()
	})
}

// A waiter that needs more time than its place has left asks Redis first. This is so for a fixed
// lease, which needs its full length, and for a waiter that Redis has not heard of for long.
func TestHanded_NotEnough(t *testing.T) {
	t.Run("a fixed lease", func(t *testing.T) {
		play(t, func(t *testing.T, w *world) {
			p := w.process()
			l := handed(w, p, p.Mutex(name, holdfast.Fixed(time.Minute)))
			if n := p.runs(""); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
			w.wantHolder(l.Owner(), 1)
			w.wantTTL(time.Minute)
			w.release(l)
		})
	})
	t.Run("a place that was kept long ago", func(t *testing.T) {
		play(t, func(t *testing.T, w *world) {
			p := w.process()
			held := w.lock(t.Context(), w.process().mutex)
			next := w.goLock(t.Context(), p.FairMutex(name))
			w.at(w.now() + 100*time.Millisecond)
			p.each(func(sending) redistest.Fault { // no answer arrives, so p cannot know
				return redistest.CloseAfterExec
			})
			w.at(w.now() + 4*time.Second)
			before := p.runs("")
			p.each(nil)
			w.release(held)
			l, err := next.result()
			if err != nil {
				t.Fatal(err)
			}
			if p.runs("") == before {
				t.Error("it began without asking")
			}
			if ends := time.Until(l.Deadline()); ends < 29*time.Second {
				t.Errorf("ends in %v", ends)
			}
			w.release(l)
			w.at(w.now() + 5*time.Second)
		})
	})
}

// The release takes the next place of its process, so that each grant costs one request.
func TestHanded_OneRequestAGrant(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		const processes, waiters, rounds = 2, 3, 5
		all := []*process{w.process(), w.process()}
		grants := make(chan *lease.Lease)
		for _, p := range all {
			m := p.Mutex(name, holdfast.Cohort(0, 0))
			for range waiters {
				go func() {
					for range rounds {
						l := w.lock(t.Context(), m)
						grants <- l
						w.release(l)
					}
				}()
			}
			synctest.Wait()
		}
		var last int64
		sent := func() int { return all[0].runs("") + all[1].runs("") }
		var before int
		for n := range processes * waiters * rounds {
			l := <-grants
			if l.Token() <= last {
				t.Fatalf("token %d after %d", l.Token(), last)
			}
			last = l.Token()
			switch n {
			case 6:
				before = sent()
			case 16:
				if requests := sent() - before; requests != 10 {
					t.Errorf("%d requests for 10 grants", requests)
				}
			}
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		w.wantFree()
		if n := w.queued(); n != 0 {
			t.Errorf("%d places are left", n)
		}
	})
}

// A waiter does not believe a message if it has lost its place since the message was sent. With its
// place it has lost what was handed to it, and another owner may hold the lock now.
func TestHanded_MessageFromBefore(t *testing.T) {
	for kind, lock := range map[string]func(p *process) lease.Locker{
		"mutex": func(p *process) lease.Locker { return p.mutex },
		"fair":  func(p *process) lease.Locker { return p.FairMutex(name) },
	} {
		t.Run(kind, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p := w.process()
				other := w.lock(t.Context(), w.process().mutex)
				next := w.goLock(t.Context(), lock(p))
				w.at(100 * time.Millisecond)
				waits := w.rdb.ZRange(t.Context(), queueKey, 0, 0).Val()
				client, number, _ := strings.Cut(waits[0], ":")
				at := keys.FairLockAt(name)
				w.rdb.ZRem(t.Context(), at.Queue, waits[0]) // as a hand-over does
				w.rdb.ZRem(t.Context(), at.Alive, waits[0])
				for n := p.runs(""); p.runs("") == n; {
					w.at(w.now() + 10*time.Millisecond)
				}
				w.rdb.Publish(t.Context(), at.GrantTo(client), number+" 5 2500")
				if time.Sleep(time.Millisecond); !next.pending() {
					t.Error("two hold the lock")
				}
				w.release(other)
				l, err := next.result()
				if err != nil {
					t.Fatal(err)
				}
				w.release(l)
			})
		})
	}
}

// A message that hands the lock to another waiter, or that makes no sense, is a reason to ask
// Redis, and no more.
func TestHanded_MessagesForOthers(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		held := w.lock(t.Context(), w.process().mutex)
		next := w.goLock(t.Context(), p.mutex)
		w.at(100 * time.Millisecond)
		channels := w.rdb.PubSubChannels(t.Context(), "holdfast_lock_grant:{myLock}:*").Val()
		if len(channels) != 1 {
			t.Fatalf("channels %q", channels)
		}
		for _, text := range []string{"", "0", "1", "1 ", " 1", "999 5 2000", "999 5 60000", "1 5", "x 5 2000", "1 x 2000", "1 5 x", "-1 -1 -1", "99999999999999999999 1 2000", "1 5 2000 1"} {
			w.rdb.Publish(t.Context(), channels[0], text)
			time.Sleep(time.Millisecond)
			synctest.Wait()
			select {
			case <-next.done:
				t.Fatalf("%q let it in", text)
			default:
			}
		}
		w.release(held)
		l, err := next.result()
		if err != nil {
			t.Fatal(err)
		}
		w.release(l)
	})
}
