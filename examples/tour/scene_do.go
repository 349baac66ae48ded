// Scene about Do, the shortest way to hold a lock.

package main

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

func doOrElse(ctx context.Context, s *stage) error {
	s.note("Who finds the lock busy for 500 ms serves yesterday's report instead.")
	name := s.name("daily-report")
	a, err := s.A.Mutex(name).Lock(ctx)
	if err != nil {
		return err
	}
	defer a.Release(ctx)
	s.says("A", "is building the report")

	report, err := s.report(ctx, name)
	s.says("B", "serves the %s report", report)
	s.check("busy, so B served the old one", err == nil && report == "old")
	if err := a.Release(ctx); err != nil {
		return err
	}
	report, err = s.report(ctx, name)
	s.says("B", "serves the %s report", report)
	s.check("free, so B built a new one", err == nil && report == "new")

	errPaper := errors.New("out of paper")
	err = holdfast.Do(ctx, s.B.Mutex(name), func(context.Context) error { return errPaper })
	s.check("the work's own error comes through", errors.Is(err, errPaper))
	s.check("work that panics releases as well", panics(func() {
		_ = holdfast.Do(ctx, s.B.Mutex(name), func(context.Context) error { panic("paper jam") })
	}))
	left, err := s.show(ctx, name)
	s.check("nothing is held after any of them", len(left.holders) == 0)
	return err
}

// report builds the report, or finds one while another builds it.
func (s *stage) report(ctx context.Context, name string) (report string, err error) {
	short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	err = holdfast.Do(short, s.B.Mutex(name), func(context.Context) error {
		report = "new"
		return nil
	})
	if errors.Is(err, holdfast.ErrBusy) {
		return "old", nil
	}
	return report, err
}

func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}
