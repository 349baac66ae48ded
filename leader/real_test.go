// These tests show elections on real servers, of each topology.

package leader_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/leader"
)

// Many candidates resign in turn. One leads at a time, tokens grow, an observer never goes back, and
// nothing is left.
func TestManyTermsOnRealServers(t *testing.T) {
	t.Run("one server", func(t *testing.T) {
		s := redistest.Server(t)
		manyTerms(t, "scheduler", func() redis.UniversalClient { return s.Client(t) })
		leftBehind(t, s.Admin())
	})
	t.Run("cluster", func(t *testing.T) {
		s := redistest.Cluster(t, 3, 0)
		onlooker := s.Client(t)
		for _, name := range []string{"scheduler", "{eu}:scheduler", "odd}name"} {
			manyTerms(t, name, func() redis.UniversalClient { return s.Client(t) })
		}
		leftBehind(t, onlooker)
	})
}

func leftBehind(t *testing.T, onlooker redis.UniversalClient) {
	t.Helper()
	redistest.LeftBehind(t, onlooker, "redisson_lock_token:", "holdfast_lock_token:")
}

func manyTerms(t *testing.T, name string, dial func() redis.UniversalClient) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var inside atomic.Int32
	var last, terms atomic.Int64
	want := int64(redistest.Count(t, 2000))
	work := func(_ context.Context, term *leader.Term) error {
		if n := inside.Add(1); n != 1 {
			t.Errorf("%d lead", n)
		}
		if before := last.Swap(term.Token()); term.Token() <= before {
			t.Errorf("token %d after %d", term.Token(), before)
		}
		inside.Add(-1)
		if terms.Add(1) >= want {
			stop()
		}
		return nil
	}
	var all sync.WaitGroup
	var clients []*holdfast.Client
	var rdbs []redis.UniversalClient
	for i := range 4 {
		rdb := dial()
		c := clienttest.OpenClient(t, rdb)
		rdbs = append(rdbs, rdb)
		clients = append(clients, c)
		all.Go(func() {
			for ctx.Err() == nil {
				err := c.Leader(name, leader.Identity(fmt.Sprint(i)), leader.Lease(5*time.Second)).Run(ctx, work)
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
					return
				}
			}
		})
	}
	newest := int64(0)
	for info := range clients[0].Leader(name).Observe(ctx) {
		if info.Leads() && info.Token < newest {
			t.Errorf("token %d seen after %d", info.Token, newest)
		}
		newest = max(newest, info.Token)
	}
	all.Wait()
	if newest == 0 {
		t.Error("nothing was seen")
	}
	for i, c := range clients {
		c.Close()
		rdbs[i].Close()
	}
}

// A leader that resigns, or whose process is shut down, hands the lead over by a message: the next leads
// within a few milliseconds, and none waits for a poll.
func TestTheLeadIsHandedOver(t *testing.T) {
	for how, end := range map[string]func(h *handover) error{
		"resigned": func(h *handover) error { h.term.Resign(); return h.over() },
		"shut down": func(h *handover) error {
			h.stop()
			return errors.Join(h.leader.Shutdown(h.ctx), h.over())
		},
	} {
		t.Run(how, func(t *testing.T) {
			s, pulse := redistest.Server(t), redistest.FeelPulse(t)
			var all, beyond clienttest.Spread
			for range 20 {
				h := newHandover(t, s)
				began := time.Now()
				if err := end(h); err != nil {
					t.Fatal(err)
				}
				next := <-h.next
				took, slack := next.Sub(began), pulse.Slack(began, next)
				all.AddBeyond(took, slack)
				beyond.Add(max(0, took-slack))
				h.close()
			}
			clienttest.Figure(t, "the next leads after the leader is %s: %v", how, &all)
			// A candidate that is not told asks within 1.25 s.
			if half, worst := beyond.At(50), beyond.At(100); half > 10*time.Millisecond || worst > time.Second {
				t.Errorf("half took %v or longer, and the worst %v (beyond starvation): %v", half, worst, &all)
			}
			leftBehind(t, s.Admin())
		})
	}
}

// handover is a leader and a candidate, in a process each.
type handover struct {
	ctx    context.Context
	leader *holdfast.Client
	term   *leader.Term
	stop   context.CancelFunc // of the leader's Run
	ran    chan error
	next   chan time.Time // when the candidate led
	close  func()         // waits for all
}

// newHandover returns when one leads and the other waits.
func newHandover(t *testing.T, s *redistest.Proc) *handover {
	t.Helper()
	h := &handover{ctx: clienttest.Generous(t), ran: make(chan error, 1), next: make(chan time.Time, 1)}
	one, other := s.Client(t), s.Client(t)
	h.leader = clienttest.OpenClient(t, one)
	candidate := clienttest.OpenClient(t, other)
	running, stop := context.WithCancel(h.ctx)
	h.stop = stop
	leads, waited := make(chan *leader.Term, 1), make(chan error, 1)
	go func() {
		h.ran <- h.leader.Leader(name).Run(running, func(ctx context.Context, term *leader.Term) error {
			leads <- term
			<-ctx.Done()
			stop() // it is not to campaign again
			return nil
		})
	}()
	h.term = <-leads
	go func() {
		waited <- candidate.Leader(name).Run(h.ctx, func(context.Context, *leader.Term) error {
			h.next <- time.Now()
			return nil
		})
	}()
	// It waits when it hears what is meant for it alone. Then it asks once more, which is no hand-over.
	redistest.Eventually(t, 10*time.Second, "the candidate waits", func() error {
		heard, err := s.Admin().PubSubChannels(h.ctx, "holdfast_lock_grant:*:*").Result()
		if err == nil && len(heard) == 0 {
			err = errors.New("it hears nothing")
		}
		return err
	})
	time.Sleep(20 * time.Millisecond)
	h.close = func() {
		if err := <-waited; err != nil {
			t.Error(err)
		}
		_, _ = h.leader.Close(), candidate.Close()
		_, _ = one.Close(), other.Close()
	}
	return h
}

// over waits for the end of the leader's Run.
func (h *handover) over() error {
	if err := <-h.ran; !errors.Is(err, context.Canceled) {
		return fmt.Errorf("Run = %w", err)
	}
	return nil
}
