// Those that wait for long heed a rate that is set meanwhile.

package limiter

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/line"
)

// errMoved ends the watch of all that wait for one limit: the rate was set.
var errMoved = errors.New("the rate was set")

// again is how long one look at a limit serves those that become the head of its line.
const again = time.Second

// watched is the limit of a Limiter that was looked at last, and when.
type watched struct {
	key string
	at  time.Time
}

// watcher is a turn that stands in the line of its limit, until shortly before its time.
type watcher struct {
	*turn
	told  string // the last message
	heard bool   // it is news
}

// watch waits in the line of the limit until a message or a look says that the rate was set, or until shortly before
// the turn. Nothing is granted there: the line is what listens and looks, once for all that wait in this process.
func (p *turn) watch(ctx context.Context) error {
	l := p.limiter
	short, cancel := context.WithDeadline(ctx, p.at.Add(-heed))
	defer cancel()
	w := &watcher{turn: p}
	_, err := l.engine.Lines.Wait(short, &line.Want{
		Kind:    p.kind,
		Key:     l.at.Key,
		Channel: l.family.root.at.Channel,
		Grant:   line.Common,
		Closing: p.closing,
		Asker:   w,
		Hearer:  w,
	})
	switch {
	case errors.Is(err, errMoved):
		p.follow(ctx)
		return nil
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return nil
	default:
		return err
	}
}

// Try implements line.Asker. A look that fails says nothing: the turn stays as it is.
func (w *watcher) Try(ctx context.Context, ask line.Ask) (line.Answer, error) {
	waits := line.Answer{Held: line.NoKnownEnd}
	if !ask.Poll && !w.heard && w.limiter.family.lookedLately(w) {
		return waits, nil
	}
	fresh := again
	if w.heard {
		fresh, w.heard = 1, false
	}
	a, err := w.limiter.look(ctx, fresh)
	switch {
	case err == nil && a.rate.rev > w.rev:
		return waits, line.ForAll(errMoved)
	case err == nil:
		w.limiter.family.looks(w.limiter)
	case ctx.Err() != nil:
		return waits, ctx.Err()
	}
	return waits, nil
}

// Heard implements line.Hearer.
func (w *watcher) Heard(message string) error {
	w.heard = w.heard || message != "" && message != w.told
	w.told = message
	return nil
}

// lookedLately reports whether the limit was looked at just now, or the watcher took its units just now.
func (f *family) lookedLately(w *watcher) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.watched.key == w.limiter.at.Key && time.Since(f.watched.at) < again
}

// looks notes that the limit was looked at.
func (f *family) looks(l *Limiter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watched = watched{l.at.Key, time.Now()}
}

// follow moves the turn if the rate was set in the meantime. If Redis does not say, the turn stays.
func (p *turn) follow(ctx context.Context) {
	ctx, cancel := context.WithDeadline(ctx, p.at)
	defer cancel()
	// This turn is not near: see turn.lua.
	a, err := p.limiter.look(ctx, again)
	if err != nil || a.rate.rev <= p.rev {
		return
	}
	p.rev = a.rate.rev
	if a.taken < p.taken {
		return // Redis has lost its data since: the units are nowhere in the debt
	}
	ahead := a.debt - a.rate.of(a.taken-p.taken) - a.rate.whole()
	if a.debt == ever*time.Microsecond {
		ahead = a.debt // how much of a longer debt is behind this turn is not known: it waits for the next Set
	}
	p.at = a.at.Add(max(ahead, 0))
}
