// Pause and Resume: nothing new begins at a name for a while.

package holdfast

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/pause"
	"github.com/holdfast-go/holdfast/lease"
)

// Pause is one pause of a name. Inspect shows it in Inspection.Paused.
type Pause struct {
	// By is the identity of the Client that paused the name, or the Client's ID if it has no identity.
	// Because is the reason that was given for the pause.
	By, Because string
	// Since and Until are the beginning and the end of the pause, on the server's clock.
	Since, Until time.Time
}

// String returns the pause as one line.
func (p Pause) String() string {
	text := fmt.Sprintf("by %q until %s", p.By, p.Until.UTC().Format(time.RFC3339))
	if p.Because != "" {
		text += fmt.Sprintf(": %q", p.Because)
	}
	return text
}

// longestPause is the longest pause: one that everybody has forgotten must end.
const longestPause = 30 * 24 * time.Hour

// PauseOption configures one call of Client.Pause.
type PauseOption func(*Pause)

// Until sets when the pause ends, on the server's clock. Resume can end the pause earlier. Until is
// required, and t may be at most 30 days ahead.
func Until(t time.Time) PauseOption { return func(p *Pause) { p.Until = t } }

// Because sets the reason for the pause; its first 256 bytes are kept. Inspect shows the reason, and so
// does the text of errors that match ErrPaused.
func Because(text string) PauseOption { return func(p *Pause) { p.Because = text } }

// Pause stops new work from beginning at a name, in all processes. The pause lasts until Resume is called,
// or until the time that the option Until sets. During the pause:
//
//   - Tick returns ErrPaused, and nobody wins the tick.
//   - A leader steps down within 1.25 s, and nobody else leads. The context of its work ends with a cause
//     that matches ErrPaused.
//   - A Once with once.Pausable, and Do with Pausable, wait before they begin their work.
//
// Within 1.25 s after the end of the pause, elections, Onces and Dos go on automatically. Except for a
// leader's work, work that has begun before the pause may finish. Other synchronizers, such as a Mutex, do
// not heed a pause. If the name is already paused, the new pause replaces the earlier one.
//
// If Pause returns an error, it has paused nothing. If Redis did not answer a request, the request may have
// paused the name. The Client then undoes that pause in the background, and an earlier pause of the name
// goes on. If Redis does not answer within 3 s, or before ctx's deadline, the error matches ErrUnavailable.
// If there is no Until, or its time is past or more than 30 days ahead, the error matches ErrBadArgument.
func (c *Client) Pause(ctx context.Context, name string, options ...PauseOption) error {
	p := Pause{By: c.config.identity}
	if p.By == "" {
		p.By = c.ID()
	}
	for _, o := range options {
		if o != nil {
			o(&p)
		}
	}
	key, err := c.pauseOf(name)
	if left := time.Until(p.Until); err == nil && (left <= 0 || left > longestPause) {
		err = fmt.Errorf("a pause until %v, in %v: %w", p.Until, left, ErrBadArgument)
	}
	if err == nil {
		err = pause.Begin(ctx, c.engine, key, pause.Pause{By: p.By, Because: p.Because, Until: p.Until})
	}
	if err != nil {
		return errs.Wrap("pause "+errs.Quote(name), errs.Ended(ctx, err))
	}
	return nil
}

// Resume ends the pause of a name. If the name is not paused, Resume does nothing and returns nil. If Redis
// does not answer within 3 s, or before ctx's deadline, the error matches ErrUnavailable. In that case the
// pause may have ended or not.
func (c *Client) Resume(ctx context.Context, name string) error {
	key, err := c.pauseOf(name)
	if err == nil {
		err = pause.End(ctx, c.engine, key)
	}
	if err != nil {
		return errs.Wrap("resume "+errs.Quote(name), errs.Ended(ctx, err))
	}
	return nil
}

// pauseOf returns the key of the pause of a name.
func (c *Client) pauseOf(name string) (string, error) {
	if err := c.engine.Broken(); err != nil {
		return "", err
	}
	return c.space.ForPause(c.mapped(name))
}

// Pausable makes Do heed a pause of the lock's name: see Client.Pause. While the name is paused, Do neither
// begins work nor holds the lock. Do waits for the end of the pause as it waits for a lock, and locks again
// within 1.25 s after the end of the pause. If ctx or WaitAtMost ends the wait earlier, the error matches
// ErrPaused. Work that has begun goes on during a pause. Pausable costs one request after the grant.
//
// Pausable works for the locks of a Client and for permits. A stripe is paused by the name <name>:<number>.
// For slots, a MultiLock, a Quorum, a Lockable of your own, or a lock with Supersede, work does not run,
// and the error matches ErrBadArgument.
func Pausable() DoOption { return func(d *doing) { d.pausable = true } }

// unpaused locks, and if the name of the lock is paused by then, gives it back, waits for the end of the pause and locks anew.
func unpaused[H Handle](ctx context.Context, lockIt func(context.Context) (H, error), once bool) (H, error) {
	var none H
	for {
		l, err := lockIt(hold.Twice(ctx))
		if err != nil {
			return l, err
		}
		held, can := any(l).(*lease.Lease)
		if !can {
			err = fmt.Errorf("a lease of type %T cannot heed a pause: %w", l, ErrBadArgument)
			return none, together(errs.Wrap("do", err), l.Release(ctx))
		}
		e, key := (*hold.Lease)(held).Home()
		key, err = e.Keys.ForPause(key) // which refuses what is not at the key of its name
		if err != nil {
			return none, together(errs.Wrap("do", err), l.Release(ctx))
		}
		p, err := pause.Found(ctx, e, key, held, once)
		if err == nil && !p.Lasts() {
			return l, nil
		}
		if err == nil {
			err = pause.Wait(ctx, e, key, p)
		}
		if err != nil {
			return none, errs.Wrap("do under "+errs.Quote(l.Name()), errs.Ended(ctx, err))
		}
	}
}
