// These cases are about elections and Once, which are no Lockers.

package lockertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/once"
)

// Elections runs the cases of elections. keeps is as in Kind.
func Elections(t *testing.T, r Redis, keeps []string) {
	runCases(t, Subject{Redis: r, Kind: Kind{Name: "leader", Keeps: keeps}}, []testCase{
		{"one leads", nil, oneLeads},
		{"a process that is gone", nil, leaderIsGone},
	})
}

// candidate is one candidate while its Run goes on.
type candidate struct {
	*leader.Election
	c     *holdfast.Client
	id    string
	terms chan leading
	stop  context.CancelFunc
	done  chan struct{}
	err   error // Run's, when done is closed
}

// leading is a term while its work runs.
type leading struct {
	*leader.Term
	ctx   context.Context
	at    time.Time
	leave chan error // what the work is to return
}

// campaign starts a candidate in a process of its own.
func (w *stage) campaign(id string) *candidate {
	w.Helper()
	c := w.process()
	e := c.Leader(w.name, leader.Identity(id), leader.Value("addr of "+id), leader.Lease(length))
	n := &candidate{c: c, Election: e, id: id, terms: make(chan leading), done: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	w.Cleanup(stop)
	n.stop = stop
	go func() {
		defer close(n.done)
		n.err = n.Run(ctx, func(ctx context.Context, t *leader.Term) error {
			l := leading{t, ctx, time.Now(), make(chan error, 1)}
			select {
			case n.terms <- l:
				return <-l.leave
			case <-ctx.Done():
				return nil
			}
		})
	}()
	return n
}

// leads waits until the candidate leads.
func (w *stage) leads(n *candidate) leading {
	w.Helper()
	select {
	case l := <-n.terms:
		return l
	case <-n.done:
		w.Fatalf("%s does not lead: %v", n.id, n.err)
	case <-time.After(patience):
		w.Fatalf("%s does not lead", n.id)
	}
	return leading{}
}

// waitsToLead waits until those candidates wait, in that order.
func (w *stage) waitsToLead(e *candidate, want ...string) {
	w.Helper()
	var got []string
	for began := time.Now(); time.Since(began) < patience; time.Sleep(10 * time.Millisecond) {
		all, err := e.Candidates(w.patient())
		if err != nil {
			w.Fatalf("Candidates: %v", err)
		}
		got = nil
		for _, c := range all {
			got = append(got, c.Identity)
		}
		if slices.Equal(got, want) {
			return
		}
	}
	w.Fatalf("the candidates are %q, want %q", got, want)
}

// retire ends the candidates' Runs, and waits for them. The work of l, which one of them leads, returns meanwhile.
func (w *stage) retire(l leading, all ...*candidate) {
	w.Helper()
	for _, n := range all {
		n.stop()
	}
	l.leave <- nil
	for _, n := range all {
		w.await("Run of "+n.id, n.done)
		w.matches(n.id+": Run", n.err, context.Canceled)
	}
}

// sees fails the test unless the candidate sees that leader.
func (w *stage) sees(n *candidate, l leading, id string) {
	w.Helper()
	info, err := n.Leader(w.patient())
	if err != nil || info.Identity != id || info.Value != "addr of "+id || info.Token != l.Token() {
		w.Errorf("%s sees %+v (%v), want %s with token %d", n.id, info, err, id, l.Token())
	}
}

// oneLeads has three candidates lead in turn. Each hand-over is by message, and an observer sees the leaders.
func oneLeads(w *stage) {
	all := []*candidate{w.campaign("0")}
	l := w.leads(all[0])
	for _, id := range []string{"1", "2"} {
		all = append(all, w.campaign(id))
		w.waitsToLead(all[0], []string{"1", "2"}[:len(all)-1]...)
	}
	watching, stop := context.WithCancel(context.Background())
	defer stop()
	var seen []int64
	var observer sync.WaitGroup
	observer.Go(func() {
		for info := range all[1].Observe(watching) {
			seen = append(seen, info.Token)
		}
	})
	for i := range 4 {
		at, next, last := all[i%3], all[(i+1)%3], all[(i+2)%3]
		if !at.IsLeader() || next.IsLeader() || last.IsLeader() {
			w.Errorf("%s leads: %v; the others: %v, %v", at.id, at.IsLeader(), next.IsLeader(), last.IsLeader())
		}
		w.sees(next, l, at.id)
		time.Sleep(1100 * time.Millisecond) // a short term is followed by a pause
		token := l.Token()
		l.Resign()
		w.endedBy(l.ctx, holdfast.ErrResigned)
		resigned := time.Now()
		l.leave <- nil
		l = w.leads(next)
		w.promptly("the next leads", resigned, l.at)
		if l.Token() <= token {
			w.Errorf("token %d after %d", l.Token(), token)
		}
		w.waitsToLead(all[0], last.id, at.id)
	}
	time.Sleep(1500 * time.Millisecond) // an observer that heard nothing has asked by then
	w.retire(l, all...)
	if _, err := all[0].Leader(w.patient()); !errors.Is(err, holdfast.ErrNoLeader) {
		w.Errorf("Leader = %v when all have retired", err)
	}
	stop()
	observer.Wait()
	tokens := slices.DeleteFunc(seen, func(token int64) bool { return token == 0 })
	if !slices.IsSorted(tokens) || w.s.Virtual && !slices.Contains(tokens, l.Token()) {
		w.Errorf("observed %v, and %d led last", tokens, l.Token())
	}
}

// leaderIsGone shows that the next leads when the lease of a leader is over whose process is gone.
func leaderIsGone(w *stage) {
	b := w.campaign("b")
	l := w.leads(b)
	c := w.campaign("c")
	w.waitsToLead(b, "c")
	until := l.Deadline()
	if err := b.c.Close(); err != nil {
		w.Errorf("Close: %v", err)
	}
	closed := time.Now()
	w.endedBy(l.ctx, holdfast.ErrClosed)
	l.leave <- nil
	w.await("Run", b.done)
	w.matches("Run", b.err, holdfast.ErrClosed)
	next := w.leads(c)
	if early := until.Sub(next.at); early > 0 {
		w.Errorf("c leads %v before the lease of b is over", early)
	}
	w.promptly("the next leads", closed.Add(length), next.at)
	w.retire(next, c)
}

// Onces runs the case of Once. keeps is as in Kind.
func Onces(t *testing.T, r Redis, keeps []string) {
	runCases(t, Subject{Redis: r, Kind: Kind{Name: "once", Keeps: keeps}}, []testCase{
		{"all have the result of one", nil, allHaveOneResult},
	})
}

// allHaveOneResult makes callers of two processes ask at the same time, and later. The work lasts for longer than its
// lease, and its result cannot be forgotten meanwhile.
func allHaveOneResult(w *stage) {
	const key = "customer:7"
	a, b := w.process(), w.process()
	of := func(c *holdfast.Client) *once.Once {
		return c.Once(w.name, once.Keep(time.Hour), once.Lease(lease.Renewed(length)))
	}
	if err := of(a).Forget(w.patient(), key); err != nil { // it may stand from an earlier run
		w.Fatalf("Forget: %v", err)
	}
	var runs atomic.Int32
	begun, done := make(chan struct{}), make(chan struct{})
	results := make(chan int64, 10)
	var callers sync.WaitGroup
	call := func(c *holdfast.Client) {
		callers.Go(func() {
			got, err := once.Value(w.patient(), of(c), key, func(ctx context.Context) (int64, error) {
				if runs.Add(1) == 1 {
					close(begun)
					<-done
				}
				return once.Token(ctx), ctx.Err()
			})
			if err != nil {
				w.Errorf("Value: %v", err)
			}
			results <- got
		})
	}
	call(a)
	w.await("the beginning of the work", begun)
	for range 4 {
		call(a)
		call(b)
	}
	w.matches("Forget of work under way", of(b).Forget(w.patient(), key), holdfast.ErrBusy)
	time.Sleep(length + 500*time.Millisecond)
	close(done)
	callers.Wait()
	call(b)
	callers.Wait()
	first := <-results
	for range 9 {
		if got := <-results; got != first {
			w.Errorf("callers have %d and %d", first, got)
		}
	}
	if n := runs.Load(); n != 1 || first == 0 {
		w.Errorf("the work was done %d times, and gave %d", n, first)
	}
}
