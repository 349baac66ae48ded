package quorum_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/figures"
	"github.com/holdfast-go/holdfast/internal/test/redises"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/quorum"
)

// Processes lock, work and lock again at once. Each gets its turn: those that have waited longest come first,
// also where servers are silent.
func TestQuorum_WaitersTakeTurns(t *testing.T) {
	for _, tc := range []struct {
		processes, silent int
		work, lasts       time.Duration
	}{
		{10, 0, 30 * time.Millisecond, 2 * time.Second},
		{4, 2, 5 * time.Millisecond, 1500 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%d processes, %d silent servers, %v", tc.processes, tc.silent, tc.work), func(t *testing.T) {
			play(t, 5, func(t *testing.T, w *stage) {
				w.began()
				time.Sleep(3 * time.Second) // after this the quorum no longer begins
				var quorums []*quorum.Quorum
				for range tc.processes {
					p := w.process()
					for s := range 5 {
						p.Nets[s].OnCommand(func(redistest.Command) redistest.Fault {
							if s < tc.silent {
								return redistest.Silence
							}
							return redistest.Delay(500 * time.Microsecond)
						})
					}
					quorums = append(quorums, p.quorum())
				}
				over, stop := context.WithTimeout(t.Context(), tc.lasts)
				defer stop()
				grants, longest := figures.Turns(over, quorums, tc.work)
				sum := 0
				for _, n := range grants {
					sum += n
				}
				t.Logf("%d grants, for each process %v; the longest wait of each %v", sum, grants, longest)
				for i, n := range grants {
					if n < sum/tc.processes/2 || longest[i] > 1300*time.Millisecond {
						t.Errorf("of %d grants to %d processes one had %d, and waited for %v", sum, tc.processes, n, longest[i])
					}
				}
				for _, p := range w.Processes {
					for s := range 5 {
						p.Nets[s].OnCommand(nil)
					}
				}
				time.Sleep(5 * time.Second) // until the places of those that did not say that they leave are over
			})
		})
	}
}

// A caller that asks in vain though nobody holds the lock, as its servers are too far away for that, does not keep
// those that came after it waiting.
func TestQuorum_AWaiterThatCannotHaveItYields(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		holder, far, near := w.began(), w.process(), w.process()
		time.Sleep(3 * time.Second) // after this the quorum no longer begins
		l := w.lock(holder.quorum())
		for _, net := range far.Nets {
			net.OnCommand(func(c redistest.Command) redistest.Fault {
				if len(c.Args) > 2 && c.Args[2] == name {
					return redistest.Delay(600 * time.Millisecond)
				}
				return redistest.Pass
			})
		}
		gaveUp, giveUp := context.WithCancel(t.Context())
		var waits sync.WaitGroup
		waits.Go(func() { _, _ = far.quorum().Lock(gaveUp) })
		time.Sleep(2 * time.Second)
		granted := make(chan time.Duration)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			l, err := near.quorum().Lock(ctx)
			granted <- w.Now()
			if err != nil {
				t.Error(err)
				return
			}
			redises.Release(t, l)
		}()
		time.Sleep(time.Second)
		released := w.Now()
		redises.Release(t, l)
		if at := <-granted; at-released > 5*time.Second {
			t.Errorf("granted %v after the release", at-released)
		}
		giveUp()
		waits.Wait()
		for _, net := range far.Nets {
			net.OnCommand(nil)
		}
		time.Sleep(5 * time.Second)
	})
}

// anotherWaits has the servers know somebody who has waited for a second, and whose place is over after 1.4 s.
func (w *stage) anotherWaits() {
	for _, rdb := range w.RDBs {
		ms := time.Now().UnixMilli()
		rdb.Set(w.T.Context(), "holdfast_quorum_turns:{orders}", fmt.Sprintf("another:1 %d %d\n", ms-1000, ms+1400), 1400*time.Millisecond)
	}
}

// knowing returns a process that has found out, by a lock of its own, that another waits.
func (w *stage) knowing() *process {
	p := w.began()
	time.Sleep(3 * time.Second) // after this the quorum no longer begins
	w.anotherWaits()
	redises.Release(w.T, w.lock(p.quorum()))
	return p
}

// requests returns how many scripts a lock and its release take.
func (w *stage) requests(p *process) (n int) {
	for _, sign := range []int{-1, 1} {
		for _, net := range p.Nets {
			n += sign * (net.Count("EVALSHA") + net.Count("EVAL"))
		}
		if sign < 0 {
			redises.Release(w.T, w.lock(p.quorum()))
			time.Sleep(5 * time.Second)
		}
	}
	return n
}

// Where others wait, a caller takes its turn before it asks at all; once they have gone, it asks at once again.
func TestQuorum_AloneAgainItAsksAtOnce(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.knowing()
		time.Sleep(2 * time.Second) // the other has gone
		turn, alone := w.requests(p), w.requests(p)
		if again := w.requests(p); turn <= alone || again != alone {
			t.Errorf("a lock and its release take %d requests, then %d, then %d", turn, alone, again)
		}
	})
}

// A Lock that ends before its turn has come says what it has waited for.
func TestQuorum_BusyThoughItHasNotAsked(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.knowing()
		w.anotherWaits()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := p.quorum().Lock(ctx)
		world.WantErr(t, err, holdfast.ErrBusy)
		world.WantErr(t, err, context.DeadlineExceeded)
		time.Sleep(5 * time.Second)
	})
}

// TryLock does not wait for its turn, though the quorum has just begun, so that it asks twice.
func TestQuorum_ATryDoesNotTakeItsTurn(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.process()
		w.anotherWaits()
		l, err := p.quorum().TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if w.Now() > time.Second {
			t.Errorf("it took %v", w.Now())
		}
		redises.Release(t, l)
		time.Sleep(5 * time.Second)
	})
}
