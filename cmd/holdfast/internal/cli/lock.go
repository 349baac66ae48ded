// Which lock a command takes, and how long it waits for it: the flags of run.

package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
)

// holding is what all leases have in common.
type holding interface {
	Done() <-chan struct{}
	Deadline() time.Time
	Err() error
	Release(ctx context.Context) error
}

// taker takes a lock, by waiting or by one try.
type taker struct {
	wait, try func(ctx context.Context) (holding, error)
	see       sight // nil: it is not one Redis that would know
}

// takes returns the taker of a lock of the library.
func takes[L holding](l interface {
	Lock(ctx context.Context) (L, error)
	TryLock(ctx context.Context) (L, error)
}) taker {
	return taker{
		wait: func(ctx context.Context) (holding, error) { return as(l.Lock(ctx)) },
		try:  func(ctx context.Context) (holding, error) { return as(l.TryLock(ctx)) },
	}
}

// as keeps a lease that is nil from becoming a holding that is not.
func as[L holding](l L, err error) (holding, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

// which are the flags that say which lock it is.
type which struct {
	fair, shared, exclusive bool
	permits, of             int
	multi, quorum           []string
	from                    *holdfast.Owner // of attach: the owner that holds it
}

func (w *which) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&w.fair, "fair", false, "a FairMutex: in order of arrival")
	f.BoolVarP(&w.shared, "shared", "s", false, "the read side of an RWMutex: together with other readers")
	f.BoolVarP(&w.exclusive, "exclusive", "x", false, "the write side of an RWMutex: without readers")
	f.IntVarP(&w.permits, "permits", "p", 0, "so many permits of a PermitSemaphore, which has --of in all")
	f.IntVar(&w.of, "of", 0, "how many permits there are in all; they are set if nobody has set them")
	f.StringSliceVar(&w.multi, "multi", nil, "these names too: all of them or none")
	f.Var((*urlList)(&w.quorum), "quorum", "the URLs of independent servers: most of them must grant it (--url is not used)")
	f.Var((*urlFile)(&w.quorum), "quorum-file", "the file of these URLs, one a line")
	cmd.MarkFlagsMutuallyExclusive("fair", "shared", "exclusive", "permits", "quorum", "quorum-file")
	cmd.MarkFlagsMutuallyExclusive("multi", "shared", "exclusive", "permits", "quorum", "quorum-file")
	cmd.MarkFlagsRequiredTogether("permits", "of")
}

// openLock connects, and returns the lock of that name.
func (w *which) openLock(ctx context.Context, a *app, name string, lease ...holdfast.LeaseOption) (taker, func(), error) {
	if len(w.quorum) > 0 {
		return w.openQuorum(ctx, a, name, lease)
	}
	client, shut, err := a.open(ctx, a.identity()...)
	if err != nil {
		return taker{}, nil, err
	}
	t, err := w.lock(ctx, a, client, name, lease)
	if err != nil {
		shut()
		return taker{}, nil, err
	}
	t.see = sightOf(client, append([]string{name}, w.multi...)...)
	return t, shut, nil
}

// lock returns the lock of that name.
func (w *which) lock(ctx context.Context, a *app, client *holdfast.Client, name string, lease []holdfast.LeaseOption) (taker, error) {
	switch {
	case w.from != nil:
		return takesOver(client.Mutex(name, lease...), *w.from), nil
	case w.shared:
		return takes(client.RWMutex(name, lease...).RLocker()), nil
	case w.exclusive:
		return takes(client.RWMutex(name, lease...).WLocker()), nil
	case w.permits != 0:
		return w.semaphore(ctx, a, client.PermitSemaphore(name, lease...))
	case len(w.multi) > 0:
		var all []holdfast.Locker
		for _, name := range append([]string{name}, w.multi...) {
			all = append(all, w.mutex(client, name, lease))
		}
		return takes(holdfast.NewMultiLock(all...)), nil
	}
	return takes(w.mutex(client, name, lease)), nil
}

func (w *which) mutex(client *holdfast.Client, name string, lease []holdfast.LeaseOption) holdfast.Locker {
	if w.fair {
		return client.FairMutex(name, lease...)
	}
	return client.Mutex(name, lease...)
}

// semaphore sets how many permits there are, unless that is set, and returns what takes some.
func (w *which) semaphore(ctx context.Context, a *app, s *holdfast.PermitSemaphore) (taker, error) {
	ctx, cancel := a.within(ctx)
	defer cancel()
	if _, err := s.TrySetPermits(ctx, w.of); err != nil {
		return taker{}, err
	}
	of, err := s.Permits(ctx)
	if err != nil {
		return taker{}, err
	}
	if of != w.of {
		return taker{}, usage(fmt.Errorf("%q has %d permits, and --of says %d", s.Name(), of, w.of))
	}
	return takes(s.Locker(w.permits)), nil
}

// waits are the flags that say how long a command waits for a lock.
type waits struct {
	try     bool
	max     time.Duration
	bounded func() bool // --wait was given
}

func (w *waits) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVarP(&w.try, "try", "n", false, "do not wait: try once")
	f.DurationVarP(&w.max, "wait", "w", 0, "how long to wait at most (default: for ever)")
	w.bounded = func() bool { return f.Changed("wait") }
	cmd.MarkFlagsMutuallyExclusive("try", "wait")
}

// take takes the lock. If it does not, because another holds it, the error names that holder.
func (w *waits) take(ctx context.Context, a *app, t taker) (holding, error) {
	if t.see == nil {
		return w.takeBounded(ctx, a, t)
	}
	stop := a.sayWhileWaiting(ctx, t.see)
	l, err := w.takeBounded(ctx, a, t)
	stop()
	return l, a.named(ctx, err, t.see)
}

// takeBounded takes the lock, and waits for as long as the flags say.
func (w *waits) takeBounded(ctx context.Context, a *app, t taker) (holding, error) {
	switch {
	case w.try, w.bounded() && w.max == 0:
		ctx, cancel := a.within(ctx)
		defer cancel()
		return t.try(ctx)
	case w.bounded():
		ctx, cancel := context.WithTimeoutCause(ctx, w.max, fmt.Errorf("waited for %v", w.max))
		defer cancel()
		return t.wait(ctx)
	}
	return t.wait(ctx)
}

// names returns the names of a lock as one text.
func (w *which) names(name string) string {
	return strings.Join(append([]string{name}, w.multi...), ",")
}
