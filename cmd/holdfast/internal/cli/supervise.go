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
}

func (s *supervision) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.DurationVar(&s.lease, "lease", 30*time.Second, "how long the lock outlives this process if it dies; it is renewed each third of that")
	f.DurationVar(&s.grace, "grace", 5*time.Second, "how long the program has between SIGTERM and SIGKILL if the lock is lost")
	f.StringVar(&s.onLost, "on-lost", "end", `what happens if the lock is lost: "end" ends the program, "leave" lets it go on`)
}

func (s *supervision) valid() error {
	if s.onLost != "end" && s.onLost != "leave" {
		return fmt.Errorf(`--on-lost is "end" or "leave", not %q`, s.onLost)
	}
	if s.grace < 0 || s.grace > s.lease/2 {
		return fmt.Errorf("--grace %v is longer than half of --lease %v, so the program could not end before the lease", s.grace, s.lease)
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
	code, lost, err := child.Under(relay, w.Hold, p, child.Rules{
		Grace: s.grace, Margin: w.margin(), Leave: s.onLost == "leave",
		Told: func() { a.say("%v: %s", lossOf(w.why()), what) },
	})
	if err != nil || !lost {
		return code, err
	}
	return code, &exit{codeLost, nil} // it has been said
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
