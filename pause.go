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

// Pause is one pause of a name, as Inspect shows it.
type Pause struct {
	// By is the identity of the Client that paused the name, or its ID if it has none. Because is the reason
	// given.
	By, Because string
	// Since and Until are its beginning and its end, by the server's clock.
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

// PauseOption configures one Pause.
type PauseOption func(*Pause)

// Until sets when the pause ends, by the server's clock, unless Resume ends it before. It is required; at most 30
// days ahead.
func Until(t time.Time) PauseOption { return func(p *Pause) { p.Until = t } }

// Because gives the reason; its first 256 bytes are kept. Inspect and errors that match ErrPaused
// show it.
func Because(text string) PauseOption { return func(p *Pause) { p.Because = text } }

// Pause keeps new work from beginning at a name, in all processes, until Resume or Until:
//
//   - Tick returns ErrPaused, and nobody takes the tick;
//   - a leader steps down within 1.25 s: its work's context ends with a cause that matches ErrPaused, and nobody else leads;
//   - a Once with once.Pausable, and Do with Pausable, wait before they begin their work.
//
// Each goes on of its own accord within 1.25 s of the pause's end. Other work that is under way may finish. What does
// not heed a pause, such as a Mutex, goes on too. A Pause of a name that is paused replaces the earlier pause.
//
// If Pause returns an error, it has paused nothing: what an unanswered request may have done is undone in the
// background, and a pause that it replaced goes on. If Redis does not answer within 3 s, or before ctx's deadline, the
// error matches ErrUnavailable. Without Until, or if that time is past or more than 30 days ahead, it matches
// ErrBadArgument.
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

// Resume ends the pause of a name. If it is not paused, Resume returns nil and does nothing. If Redis does not answer within
// 3 s, or before ctx's deadline, the error matches ErrUnavailable, and the pause may have ended all the same.
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

// Pausable makes Do heed a pause of the lock's name. While the name is paused, work does not begin, and Do does not
// hold the lock. It waits as it does for the lock, and locks again within 1.25 s of the pause's end. If the wait ends
// before, the error matches ErrPaused. It costs one request, after the grant. Work that has begun goes on.
//
// It works for the locks of a Client and for permits; a stripe has the name <name>:<number>. For slots, a MultiLock, a
// Quorum, a Lockable of your own or a lock with Supersede, work does not run, and the error matches ErrBadArgument.
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
		p, err := pause.Look(ctx, e, key)
		if err == nil && !p.Lasts() {
			return l, nil
		}
		if released := l.Release(ctx); err == nil && released != nil {
			err = released
		}
		if err == nil && once {
			err = p.Err()
		}
		if err == nil {
			err = pause.Wait(ctx, e, key, p)
		}
		if err != nil {
			return none, errs.Wrap("do under "+errs.Quote(l.Name()), errs.Ended(ctx, err))
		}
	}
}
