// These scenes are about work that one process does for all: an election, a result that is made once,
// and parties that go on together.

package scenes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/barrier"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/once"
)

func oneLeads(ctx context.Context, s *stage) error {
	s.note("A and B campaign for the lead of a scheduler. A leads first. Then A's work is done for")
	s.note("now, and A resigns: B leads.")
	name := s.name("scheduler")
	terms := make(chan *leader.Term, 2)
	lead := func(client *holdfast.Client, who string, until <-chan struct{}) <-chan error {
		ended := make(chan error, 1)
		go func() {
			ended <- client.Leader(name, leader.Identity(who)).Run(ctx, func(_ context.Context, term *leader.Term) error {
				s.says(who, "leads, with token %d", term.Token())
				terms <- term
				<-until
				return nil // resigns for good
			})
		}()
		return ended
	}
	untilA, untilB := make(chan struct{}), make(chan struct{})
	endedA := lead(s.A, "A", untilA)
	first := <-terms
	endedB := lead(s.B, "B", untilB)
	watching := s.B.Leader(name)
	info, err := watching.Leader(ctx)
	if err != nil {
		return err
	}
	s.says("B", "sees that %s leads, and waits", info.Identity)
	for all, err := watching.Candidates(ctx); len(all) == 0; all, err = watching.Candidates(ctx) {
		if err := errors.Join(err, sleep(ctx, 5*time.Millisecond)); err != nil {
			return err
		}
	}

	resigned := time.Now()
	close(untilA)
	second := <-terms
	s.says("B", "took over %s after A's work had ended", ms(time.Since(resigned)))
	s.check("the token of the second term is greater", second.Token() > first.Token())
	close(untilB)
	err = errors.Join(<-endedA, <-endedB)
	_, nobody := watching.Leader(ctx)
	s.check("after both have resigned nobody leads", errors.Is(nobody, holdfast.ErrNoLeader))
	return err
}

func doneOnce(ctx context.Context, s *stage) error {
	const callers = 8
	s.note("A customer's click arrives eight times, at A and at B. The charge is made once, and all")
	s.note("eight get its receipt.")
	name := s.name("charge")
	var runs crowd
	receipts := make([]string, callers)
	err := everyone(callers, func(i int) (err error) {
		who, client := s.process(i)
		receipts[i], err = once.Value(ctx, client.Once(name, once.Keep(time.Minute)), "order-7",
			func(ctx context.Context) (string, error) {
				return fmt.Sprintf("receipt %d of %s", runs.enter(), who), sleep(ctx, 100*time.Millisecond)
			})
		return err
	})
	if err != nil {
		return err
	}
	s.says("all", "have %q", receipts[0])
	same := true
	for _, receipt := range receipts {
		same = same && receipt == receipts[0]
	}
	s.check("the work was done once", runs.most == 1)
	s.check("all callers have the same receipt", same)
	return nil
}

func inTurn(ctx context.Context, s *stage) error {
	const calls, rate = 10, 20
	s.note("A and B call an API that allows 20 calls a second, one after the other. Each call waits for its")
	s.note("turn. A wait that would be too long is refused at once.")
	name := s.name("api")
	limit := func(client *holdfast.Client) *holdfast.Limiter {
		return client.Limiter(name, limiter.Rate(rate, time.Second), limiter.Burst(1))
	}
	began := time.Now()
	err := everyone(calls, func(i int) error {
		who, client := s.process(i)
		err := limit(client).Wait(ctx, 1)
		s.says(who, "calls after %s", ms(time.Since(began)))
		return err
	})
	if err != nil {
		return err
	}
	s.check("ten calls take nine twentieths of a second", time.Since(began) >= (calls-1)*time.Second/rate)

	if _, err := limit(s.A).Reserve(ctx, 1); err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, time.Millisecond*20)
	defer cancel()
	late := limit(s.B).Wait(short, 1)
	var busy *holdfast.BusyError
	s.says("B", "Wait: %v", late)
	s.check("B is told when its turn would come", errors.As(late, &busy) && busy.Left > 0)
	return nil
}

func threeTogether(ctx context.Context, s *stage) error {
	s.note("Three parties end a phase together. In the next one, B loses its patience: the others are")
	s.note("told, and the one after that works again.")
	name := s.name("phase")
	phase := func() (trips [3]barrier.Trip, err error) {
		err = everyone(len(trips), func(i int) (err error) {
			_, client := s.process(i)
			trips[i], err = client.Barrier(name, len(trips)).Await(ctx)
			return err
		})
		return trips, err
	}
	trips, err := phase()
	if err != nil {
		return err
	}
	s.says("all", "are in generation %d", trips[0].Generation)
	s.check("all parties passed the same generation", trips[0].Generation == trips[1].Generation && trips[1].Generation == trips[2].Generation)

	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	waiting := make(chan error, 1)
	go func() {
		_, err := s.A.Barrier(name, 3).Await(ctx)
		waiting <- err
	}()
	_, left := s.B.Barrier(name, 3).Await(short)
	s.says("B", "Await: %v", left)
	told := <-waiting
	s.says("A", "Await: %v", told)
	s.check("B's wait has ended", errors.Is(left, context.DeadlineExceeded))
	s.check("A was told that the generation has broken", errors.Is(told, holdfast.ErrBroken))

	again, err := phase()
	s.check("the next generation trips", err == nil && again[0].Generation > trips[0].Generation)
	return nil
}
