// This scene is about locks that are held for long, and the monitor that reports them.

package scenes

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

func alarm(ctx context.Context, s *stage) error {
	const threshold = 300 * time.Millisecond
	s.note("A forgets to release. B watches all jobs, for locks that are held for more than 300 ms,")
	s.note("and looks every 100 ms.")
	forgotten, quick := s.name("job:forgotten"), s.name("job:quick")
	a, err := s.A.Mutex(forgotten).Lock(ctx)
	if err != nil {
		return err
	}
	defer a.Release(ctx)
	done := func(context.Context) error { return sleep(ctx, 20*time.Millisecond) }
	if err := holdfast.Do(ctx, s.A.Mutex(quick), done); err != nil {
		return err
	}

	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	var rung []holdfast.HeldLong
	err = s.B.Monitor(watch, holdfast.MonitorOptions{
		Pattern:   s.name("job:*"),
		Threshold: threshold,
		Every:     100 * time.Millisecond,
		OnHeld: func(h holdfast.HeldLong) {
			s.says("B", "alarm: %v", h)
			if rung = append(rung, h); len(rung) == 3 {
				cancel()
			}
		},
	})
	if !errors.Is(err, context.Canceled) {
		return err
	}
	always, long := true, true
	for _, h := range rung {
		always = always && h.Name == forgotten && h.Holder.Owner == a.Owner()
		long = long && h.AgeKnown && h.Age >= threshold
	}
	s.check("it rings once in each period for the forgotten lock, and for no other", always)
	s.check("it knows who holds it, and for how long: since the grant", long)

	was, err := s.B.Mutex(forgotten).ForceRelease(ctx)
	if err != nil {
		return err
	}
	i, err := s.B.Inspect(ctx, forgotten)
	s.says("B", "ForceRelease; Inspect: %v", i)
	s.check("B opens it by force", was && i.Kind == holdfast.KindFree)
	return err
}
