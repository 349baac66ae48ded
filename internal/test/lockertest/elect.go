// These cases are about elections, which are no Lockers.

package lockertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/leader"
)

// Elections runs the cases of elections. keeps is as in Kind.
func Elections(t *testing.T, r Redis, keeps []string) {
	runCases(t, Subject{Redis: r, Kind: Kind{Name: "leader", Keeps: keeps}}, []testCase{
		{"one leads", nil, oneLeads},
		{"request to resign", nil, requestToResign},
		{"priority", nil, priorities},
		{"preempt", nil, preempts},
		{"a lead that is taken away", nil, leadTakenAway},
		{"a leader whose process is gone", nil, leaderIsGone},
		{"a candidate leaves", nil, candidateLeaves},
	})
}

// leadLease is the lease of the leaders.
const leadLease = 2 * time.Second

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
func (w *stage) campaign(id string, options ...leader.Option) *candidate {
	w.Helper()
	c := w.process()
	options = append([]leader.Option{leader.Identity(id), leader.Value("addr of " + id), leader.Lease(leadLease)}, options...)
	n := &candidate{c: c, Election: c.Leader(w.name, options...), id: id, terms: make(chan leading), done: make(chan struct{})}
	ctx, stop := context.WithCancel(w.patient())
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

// retire ends the candidates' Runs, and waits for them.
func (w *stage) retire(all ...*candidate) {
	w.Helper()
	for _, n := range all {
		n.stop()
		<-n.done
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

// oneLeads has three candidates lead in turn, twice. Each hand-over is by message, and an observer sees
// each leader.
func oneLeads(w *stage) {
	var all []*candidate
	first := w.campaign("0")
	l := w.leads(first)
	for i := range 2 {
		n := w.campaign(fmt.Sprint(i + 1))
		all = append(all, n)
		w.waitsToLead(first, []string{"1", "2"}[:i+1]...)
	}
	all = append(all, first) // the order in which they lead from now on
	watching, stop := context.WithCancel(w.patient())
	var seen []int64
	var observer sync.WaitGroup
	observer.Go(func() {
		for info := range all[1].Observe(watching) {
			seen = append(seen, info.Token)
		}
	})
	best := time.Hour
	for i := range 6 {
		at := all[(i+2)%3]
		if !at.IsLeader() || all[i%3].IsLeader() || all[(i+1)%3].IsLeader() {
			w.Inexcusable("%s leads: %v; the others: %v, %v", at.id, at.IsLeader(), all[i%3].IsLeader(), all[(i+1)%3].IsLeader())
		}
		w.sees(all[i%3], l, at.id)
		time.Sleep(1100 * time.Millisecond) // a short term is followed by a pause
		token := l.Token()
		l.Resign()
		w.endedBy(l.ctx, holdfast.ErrResigned)
		resigned := time.Now()
		l.leave <- nil
		l = w.leads(all[i%3])
		best = min(best, l.at.Sub(resigned))
		if l.Token() <= token {
			w.Inexcusable("token %d after %d", l.Token(), token)
		}
		w.waitsToLead(first, all[(i+1)%3].id, at.id)
	}
	if best > wakeBound {
		w.Errorf("the next leads in %v at best: not told by a message", best)
	}
	time.Sleep(1500 * time.Millisecond) // an observer that heard nothing has asked by then
	w.retireLeading(l, all...)
	stop()
	observer.Wait()
	if !slices.Contains(seen, l.Token()) {
		w.Errorf("the last leader, %d, was not observed: %v", l.Token(), seen)
	}
	newest := int64(0)
	for _, token := range seen {
		if token != 0 && token < newest {
			w.Inexcusable("the observer went back: %v", seen)
		}
		newest = max(newest, token)
	}
}

// retireLeading ends all Runs while one of the candidates leads. None of the others takes over.
func (w *stage) retireLeading(l leading, all ...*candidate) {
	w.Helper()
	for _, n := range all {
		n.stop()
	}
	l.leave <- nil
	w.retire(all...)
	if _, err := all[0].Leader(w.patient()); !errors.Is(err, holdfast.ErrNoLeader) {
		w.Errorf("Leader = %v when all have retired", err)
	}
}

// requestToResign shows that any process can ask the leader to resign, and that the lead is kept until
// the work has returned.
func requestToResign(w *stage) {
	a := w.campaign("a")
	l := w.leads(a)
	b := w.campaign("b")
	w.waitsToLead(a, "b")
	if err := b.RequestResign(w.patient()); err != nil {
		w.Errorf("RequestResign: %v", err)
	}
	w.endedBy(l.ctx, holdfast.ErrResigned)
	select {
	case <-b.terms:
		w.Inexcusable("b leads while the work of a goes on")
	case <-time.After(leadLease + 500*time.Millisecond):
	}
	w.sees(b, l, "a")
	l.leave <- nil
	w.retireLeading(w.leads(b), b, a)
}

// priorities shows that the candidate with the highest priority leads next.
func priorities(w *stage) {
	a := w.campaign("a")
	l := w.leads(a)
	low := w.campaign("low")
	w.waitsToLead(a, "low")
	high := w.campaign("high", leader.Priority(1))
	w.waitsToLead(a, "high", "low")
	w.retireFirst(a, l)
	l = w.leads(high)
	w.retireFirst(high, l)
	w.retireLeading(w.leads(low), low)
}

// retireFirst ends the Run of the one that leads.
func (w *stage) retireFirst(n *candidate, l leading) {
	w.Helper()
	n.stop()
	l.leave <- nil
	w.retire(n)
}

// preempts shows that a candidate with Preempt has a leader of lower priority resign.
func preempts(w *stage) {
	a := w.campaign("a")
	l := w.leads(a)
	b := w.campaign("b", leader.Priority(1), leader.Preempt())
	w.endedBy(l.ctx, holdfast.ErrResigned)
	l.leave <- nil
	w.retireLeading(w.leads(b), b, a)
}

// leadTakenAway shows that a leader whose hold is taken away is told with its next renewal.
func leadTakenAway(w *stage) {
	a := w.campaign("a")
	l := w.leads(a)
	b := w.campaign("b")
	w.waitsToLead(a, "b")
	if ok, err := b.c.Mutex(w.name).ForceRelease(w.patient()); !ok || err != nil {
		w.Fatalf("ForceRelease: %v, %v", ok, err)
	}
	taken := time.Now()
	w.endedBy(l.ctx, holdfast.ErrLost)
	w.promptly("the loss is told", taken.Add(leadLease/3), time.Now())
	if a.IsLeader() {
		w.Error("a says that it leads, after its loss")
	}
	l.leave <- nil
	w.retireLeading(w.leads(b), b, a)
}

// leaderIsGone shows that the next leads when the lease of a leader is over whose process is gone.
func leaderIsGone(w *stage) {
	a := w.campaign("a")
	l := w.leads(a)
	b := w.campaign("b")
	w.waitsToLead(a, "b")
	until := l.Deadline()
	if err := a.c.Close(); err != nil {
		w.Errorf("Close: %v", err)
	}
	closed := time.Now()
	w.endedBy(l.ctx, holdfast.ErrClosed)
	l.leave <- nil
	<-a.done
	w.matches("Run", a.err, holdfast.ErrClosed)
	next := w.leads(b)
	if next.at.Before(until) {
		w.Inexcusable("b leads %v before the lease of a is over", until.Sub(next.at))
	}
	w.promptly("the next leads", closed.Add(leadLease), next.at)
	w.retireLeading(next, b)
}

// candidateLeaves shows that a candidate whose context ends gives its place up.
func candidateLeaves(w *stage) {
	a := w.campaign("a")
	l := w.leads(a)
	b := w.campaign("b")
	w.waitsToLead(a, "b")
	c := w.campaign("c")
	w.waitsToLead(a, "b", "c")
	w.retire(b)
	w.waitsToLead(a, "c")
	w.retireFirst(a, l)
	w.retireLeading(w.leads(c), c)
}
