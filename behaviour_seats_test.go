// This file is about a release that takes the next place of its process, and about what may come
// between.

package holdfast_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

// slowToSubscribe delays the confirmation of p's subscriptions by 2 ms, so that a waiter has no
// place in the queue until then.
func slowToSubscribe(p *process) {
	p.net.OnCommand(func(c redistest.Command) redistest.Fault {
		if strings.EqualFold(c.Name, "SUBSCRIBE") {
			return redistest.Delay(2 * time.Millisecond)
		}
		return p.observe(c)
	})
}

// heldAndWaited locks with held, which is a lock of p, and starts a waiter for p's mutex. The
// waiter has no place in the queue yet.
func (p *process) heldAndWaited(held lease.Locker) (first *holdfast.Lease, next *attempt) {
	p.w.t.Helper()
	slowToSubscribe(p)
	first = p.w.lock(p.w.t.Context(), held)
	next = p.w.goLock(p.w.t.Context(), p.mutex)
	p.w.at(time.Millisecond)
	return first, next
}

// wantHeldAlone fails the test if another process can take the lock while l still holds it.
func wantHeldAlone(t *testing.T, l *holdfast.Lease, other *process) {
	t.Helper()
	c, err := other.mutex.TryLock(t.Context())
	if err != nil {
		return
	}
	if l.Err() == nil {
		t.Errorf("two hold it: tokens %d and %d", l.Token(), c.Token())
	}
	_ = c.Release(t.Context())
}

// A release takes a place for its process, and its answer is lost. The process does not give up
// that place after a waiter has asked in it and has been granted the lock.
func TestSeat_AskedInBeforeTheReleaseIsAnswered(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, other := w.process(), w.process()
		first, next := p.heldAndWaited(p.mutex)
		reply := make(chan struct{})
		p.each(func(s sending) redistest.Fault {
			switch {
			case s.script == releaseRun && s.n == 1:
				return redistest.CloseAfterExec
			case s.script == releaseRun && s.n == 2:
				return redistest.Delay(3 * time.Millisecond)
			case s.script == enterRun:
				return redistest.HoldReply(reply)
			}
			return redistest.Pass
		})
		go func() { time.Sleep(6 * time.Millisecond); close(reply) }()
		w.release(first)
		l, err := next.result()
		if err != nil {
			t.Fatal(err)
		}
		w.at(50 * time.Millisecond)
		wantHeldAlone(t, l, other)
		p.each(nil)
		w.release(l)
	})
}

// Redis is out of reach until the release is given up. The process does not give up that place in
// this case either.
func TestSeat_AskedInDuringAnOutage(t *testing.T) {
	for range 20 {
		play(t, func(t *testing.T, w *world) {
			p, other := w.process(), w.process()
			first, next := p.heldAndWaited(p.mutex)
			p.unplug(true)
			go func() { _ = first.Release(t.Context()) }()
			w.at(5200 * time.Millisecond)
			p.unplug(false)
			l, err := next.result()
			if err != nil {
				t.Fatal(err)
			}
			w.at(w.now() + 2*time.Second)
			wantHeldAlone(t, l, other)
			_ = l.Release(t.Context())
			w.at(w.now() + 3*time.Second)
		})
	}
}

// The release of a lock of another kind with the same name takes no place for a Mutex.
func TestSeat_OfAnotherKind(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		held, next := p.heldAndWaited(p.RWMutex(name))
		w.release(held)
		l, err := next.result()
		if err != nil {
			t.Fatal(err)
		}
		w.release(l)
	})
}

// A waiter that was handed the lock renews it for the whole lease in time. This is so even if Redis
// is far away and the connection for renewals is not open yet.
func TestHanded_FarAway(t *testing.T) {
	for _, rtt := range []time.Duration{20 * time.Millisecond, 80 * time.Millisecond, 150 * time.Millisecond} {
		for _, after := range []time.Duration{300 * time.Millisecond, time.Second} {
			play(t, func(t *testing.T, w *world) {
				p := w.farAway(rtt)
				held := w.lock(t.Context(), w.process().mutex)
				next := w.goLock(t.Context(), p.mutex)
				for p.runs(enterRun) < 1 {
					time.Sleep(time.Millisecond)
				}
				w.at(w.now() + after)
				w.release(held)
				l, err := next.result()
				if err != nil {
					t.Fatal(err)
				}
				w.at(w.now() + 5*time.Second)
				if err := l.Err(); err != nil {
					t.Errorf("%v away, released %v after it asked: %v", rtt, after, err)
				}
				_ = l.Release(t.Context())
				w.at(w.now() + 5*time.Second)
			})
		}
	}
}

// farAway starts a process whose commands take rtt. Opening a connection takes three times as long,
// for TCP and TLS.
func (w *world) farAway(rtt time.Duration) *process {
	p := &process{w: w, net: w.mini.Proxy()}
	p.net.OnCommand(func(c redistest.Command) redistest.Fault {
		p.observe(c)
		return redistest.Delay(rtt)
	})
	p.Client = holdfast.New(p.net.Client(w.t, func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			time.Sleep(3 * rtt)
			return p.dial(ctx, network, addr)
		}
	}))
	p.mutex = p.Mutex(name)
	w.processes = append(w.processes, p)
	w.t.Cleanup(func() { p.Close() })
	return p
}

// A client sends a PING on a silent connection when a message was missed. It does not send one at
// each poll of a waiter while another goroutine of the process has a lease that it was handed.
func TestHanded_NoPingAtEachPoll(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		for _, m := range []lease.Locker{p.mutex, p.FairMutex(name)} {
			l := handed(w, p, m)
			next := w.goLock(t.Context(), m)
			w.at(w.now() + 2*time.Second)
			before := p.net.Count("PING")
			w.at(w.now() + 12*time.Second)
			if pings := p.net.Count("PING") - before; pings > 1 {
				t.Errorf("%d PINGs in 12 s", pings)
			}
			w.release(l)
			l, err := next.result()
			if err != nil {
				t.Fatal(err)
			}
			w.release(l)
		}
	})
}

// A waiter for a Mutex hears of a hand-over to it even if another waiter of its process waits for
// an RWMutex of the same name.
func TestHanded_BesideAnotherKind(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		held := w.lock(t.Context(), w.process().mutex)
		writer := w.goLock(t.Context(), p.RWMutex(name))
		w.at(100 * time.Millisecond)
		next := w.goLock(t.Context(), p.mutex)
		w.at(1500 * time.Millisecond)
		w.release(held)
		l, err := next.result()
		if err != nil {
			t.Fatal(err)
		}
		if late := w.now() - 1500*time.Millisecond; late > 20*time.Millisecond {
			t.Errorf("granted %v after the release", late)
		}
		w.release(l)
		if l, err = writer.result(); err != nil {
			t.Fatal(err)
		}
		w.release(l)
	})
}
