// This scene is about Do, the template: the shortest way to hold a lock.

package scenes

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
)

func doOrElse(ctx context.Context, s *stage) error {
	s.note("Do locks, works and releases, and tells its hooks. Who finds the lock busy for 300 ms")
	s.note("serves yesterday's report instead.")
	name := s.name("daily-report")
	a, err := s.A.Mutex(name).Lock(ctx)
	if err != nil {
		return err
	}
	defer a.Release(ctx)
	s.says("A", "is building the report")

	report, err := s.report(ctx, name, 300*time.Millisecond)
	s.says("B", "serves the %s report", report)
	s.check("busy, so B served the old one", err == nil && report == "old")
	if err := a.Release(ctx); err != nil {
		return err
	}
	report, err = s.report(ctx, name, time.Minute)
	s.says("B", "serves the %s report", report)
	s.check("free, so B built a new one", err == nil && report == "new")

	var order []string
	hook := func(what string) { order = append(order, what); s.says("B", "%s", what) }
	errPaper := errors.New("out of paper")
	err = holdfast.Do(ctx, s.B.Mutex(name), func(context.Context) error { hook("works, and fails"); return errPaper },
		holdfast.OnAcquire(func(_ context.Context, held holdfast.Handle) { hook("hook: acquired " + held.Name()) }),
		holdfast.OnExit(func(_ context.Context, _ holdfast.Handle, err error) {
			hook("hook: released, with the error " + err.Error())
		}))
	s.check("the hooks ran before and after the work", slices.Equal(order,
		[]string{"hook: acquired " + name, "works, and fails", "hook: released, with the error out of paper"}))
	s.check("the work's own error comes through", errors.Is(err, errPaper))

	left := false
	s.check("work that panics releases as well, and runs the exit hook", panics(func() {
		_ = holdfast.Do(ctx, s.B.Mutex(name), func(context.Context) error { panic("paper jam") },
			holdfast.OnExit(func(context.Context, holdfast.Handle, error) { left = true }))
	}) && left)
	now, err := s.show(ctx, name)
	s.check("nothing is held after any of them", len(now.holders) == 0)
	return err
}

// report builds a new report. If another caller builds the report for as long as patience, report
// returns the old one.
func (s *stage) report(ctx context.Context, name string, patience time.Duration) (report string, err error) {
	short, cancel := context.WithTimeout(ctx, patience)
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
