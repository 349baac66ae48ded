// Watching who has which shard.

package shards

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/line"
)

// Watch returns a sequence of slices, each of which says which member has which shard. The first slice
// shows the present members. After each change another slice follows. Element i of each slice is about
// shard i. So the member for a key is slice[s.Of(key)]. The caller may keep the slices. If several
// changes come fast, one slice may show all of them.
//
// The sequence ends when ctx ends or when the Client is closed. If an argument of the Shards is wrong,
// Watch logs this, and the sequence ends at once. If Redis refuses to answer, Watch logs this, and asks
// again every second. A message announces each change at once. If the message is lost, Watch finds the
// change within 1.25 s, because it also asks Redis. A Watch asks Redis at most twice a second. A process
// may call Watch without Run.
func (s *Shards) Watch(ctx context.Context) iter.Seq[[]Info] {
	return func(yield func([]Info) bool) {
		if err := s.usable(); err != nil {
			if made := engine.Made(s).engine; made != nil && made.Log != nil {
				made.Log.Warn("holdfast: shards cannot be watched", "error", errs.Plain(err))
			}
			return
		}
		w := &watch{Shards: s}
		for w.wait(ctx) == nil {
			if !yield(slices.Clone(w.all)) {
				return
			}
		}
	}
}

// watch is one Watch under way.
type watch struct {
	*Shards
	begun bool
	known version
	all   []Info
	sent  time.Time
}

// wait waits until something has changed since it last returned.
func (w *watch) wait(ctx context.Context) error {
	for failures := 0; ; {
		_, err := w.engine.Lines.Wait(ctx, &line.Want{
			Kind:    w.engine.Telemetry.Kind(watchKind, w.name),
			Key:     fmt.Sprintf("%s watched by %p", w.at.Members, w),
			Channel: w.at.Channel,
			Grant:   line.Common,
			Asker:   w,
		})
		if err == nil || ctx.Err() != nil || errors.Is(err, errs.Closed) {
			return err
		}
		if failures++; failures == 1 {
			w.warn("holdfast: it cannot be seen who has which shard", "error", errs.Plain(err))
		}
		if err := engine.Sleep(ctx, soon); err != nil {
			return err
		}
	}
}

// Try implements line.Asker.
func (w *watch) Try(ctx context.Context, _ line.Ask) (line.Answer, error) {
	if err := engine.Sleep(ctx, time.Until(w.sent.Add(each/atMost))); err != nil {
		return line.Answer{}, err
	}
	w.sent = time.Now()
	l, err := w.look(ctx, -1, w.known)
	if err != nil {
		return line.Answer{}, err
	}
	waits := line.Answer{Held: line.NoKnownEnd}
	if l.next > 0 {
		waits.Held = line.HeldFor(l.next) // a member that dies is gone when its lease is over
	}
	if w.begun && l.same {
		return waits, nil
	}
	w.begun, w.known = true, l.version
	all := make([]Info, w.size)
	for i := range all {
		all[i].Shard = i
	}
	for _, info := range l.owners {
		if info.Shard < len(all) {
			all[info.Shard] = info
		}
	}
	w.all = all
	return line.Answer{Granted: true}, nil
}
