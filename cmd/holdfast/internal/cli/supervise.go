// Supervision: what becomes of a program when its lock is lost. It is the same for run, leader and attach.

package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/child"
)

// supervision are the flags that say how a program ends when its lock is lost.
type supervision struct {
	lease, grace time.Duration
	onLost       string
	given        func(flag string) bool
}

func (s *supervision) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.DurationVar(&s.lease, "lease", 30*time.Second, "how long the lock outlives this process if it dies; it is renewed each third of that")
	f.DurationVar(&s.grace, "grace", 5*time.Second, "how long the program has between SIGTERM and SIGKILL if the lock is lost; "+
		"half of the lease at most")
	f.StringVar(&s.onLost, "on-lost", "end", `what happens if the lock is lost: "end" ends the program, "leave" lets it go on`)
	s.given = f.Changed
}

// valid returns what is wrong with the flags. The default of --grace gives way to a lock that is held for no longer than
// longest; 0 is no limit.
func (s *supervision) valid(longest time.Duration) error {
	if s.onLost != "end" && s.onLost != "leave" {
		return fmt.Errorf(`--on-lost is "end" or "leave", not %q`, s.onLost)
	}
	if longest == 0 {
		longest = s.lease
	}
	most := min(s.lease, longest) / 2
	if !s.given("grace") {
		s.grace = min(s.grace, most)
	}
	if s.grace > most {
		return fmt.Errorf("--grace %v is longer than half of %v, for which the lock is held, so the program could not end in time",
			s.grace, 2*most)
	}
	return nil
}

// watched is something held, as its supervision sees it.
type watched struct {
	child.Hold
	length time.Duration // of a whole lease
	why    func() error  // why it has ended; nil while it has not
}

// margin is how long before the end of the lease the program is gone: for the kernel to end it.
func (w watched) margin() time.Duration { return min(500*time.Millisecond, w.length/20) }

// whole waits until the lease lasts for its whole length. One that another holder handed over is short at
// first, and renewed 20 ms later.
func (w watched) whole() {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for left := time.Until(w.Deadline()); left > 0 && left < w.length*2/3; left = time.Until(w.Deadline()) {
		select {
		case <-look.C:
		case <-w.Done:
			return
		}
	}
}

// supervise runs the program for as long as the hold lasts, and returns its exit code. The error is about
// the loss, or about a program that could not be started.
func (a *app) supervise(s supervision, relay *child.Relay, w watched, p child.Program) (code int, err error) {
	what := "the program is ended"
	if s.onLost == "leave" {
		what = "the program goes on without it"
	}
	out, err := child.Under(relay, w.Hold, p, child.Rules{
		Grace: s.grace, Margin: w.margin(), Leave: s.onLost == "leave",
		Told: func() { a.say("%v: %s", lossOf(w.why()), what) },
	})
	if errors.Is(err, child.ErrOver) {
		a.say("%v: the program has not begun", lossOf(w.why()))
		return 0, &exit{codeLost, nil}
	}
	if !out.Lost { // then the loss is what ends this process
		a.key = out.Key
	}
	if err != nil || !out.Lost {
		return out.Code, err
	}
	return out.Code, &exit{codeLost, nil} // it has been said
}

// released returns the exit code of a program that has ended with that code, once its lock was given back with that
// outcome. A loss that only the release finds is one all the same: another may have worked at the same time.
func (a *app) released(code int, err error) (int, error) {
	switch {
	case err == nil:
	case lost(err) && code == 0:
		return 0, &exit{codeLost, fmt.Errorf("%w: found out when the program had ended", lossOf(err))}
	case lost(err):
		a.say("%v: found out when the program had ended", lossOf(err))
	default:
		a.say("%v", err)
	}
	return code, nil
}

// lost reports whether an error says that what was held is held no more.
func lost(err error) bool {
	return errors.Is(err, holdfast.ErrLost) || errors.Is(err, holdfast.ErrMaxHold)
}

// lossOf returns what ended a hold, or is about to.
func lossOf(err error) error {
	if err == nil {
		return errors.New("the lock cannot be kept any longer")
	}
	if errors.Is(err, holdfast.ErrLost) {
		return fmt.Errorf("the lock is lost: %w", err)
	}
	return err
}

// base returns the name of a program without its folder, for those who look at what is held. Arguments may
// be secret.
func base(program string) string { return filepath.Base(program) }
