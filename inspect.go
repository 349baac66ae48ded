// Inspect and InspectAll: who holds what.

package holdfast

import (
	"cmp"
	"context"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/inspect"
)

// Inspect returns the state of a name: who holds it, since when and for how long, and how many callers
// wait. Inspect sends one request to the master, and one more for the identities of the Clients that it has
// found. It writes nothing. You may inspect any name: if the key is not a synchronizer, the Kind is
// KindUnknown.
//
// If a lock has more than a few hundred readers, Inspect sends several requests, each for about 256
// readers. A reader that holds the lock during the whole call is among the Holders. A reader that comes or
// goes during the call may be among the Holders or not. If there is a failover during the call, some
// readers may be missing.
//
// If Redis returns a transient error, Inspect tries again until ctx ends. Then the error matches ctx's
// error. Any other error matches ErrDenied, ErrBadArgument or ErrClosed. A name has several keys;
// what the Redis user has no right to read counts as not known.
func (c *Client) Inspect(ctx context.Context, name string) (Inspection, error) {
	i, err := c.inspect(ctx, name, c.mapped(name))
	if err != nil {
		return i, errs.Wrap("inspect "+errs.Quote(name), err)
	}
	c.introduce(ctx, []found{{Inspection: i}})
	return i, nil
}

// introduce adds to inspections the identities that Clients have published for their owners. It asks
// once for every 256 owners. If a request fails, nothing is added for its owners.
func (c *Client) introduce(ctx context.Context, all []found) {
	var owners []hold.Owner
	each := func(f func(owner Owner, who, note *string)) {
		for _, i := range all {
			for n := range i.Holders {
				f(i.Holders[n].Owner, &i.Holders[n].Who, &i.Holders[n].Note)
			}
			for n := range i.Queue {
				f(i.Queue[n].Owner, &i.Queue[n].Who, new(string))
			}
		}
	}
	each(func(owner Owner, _, _ *string) { owners = append(owners, hold.Owner(owner)) })
	said := inspect.Who(ctx, c.engine.Conn, c.space, owners)
	each(func(owner Owner, who, note *string) {
		s := said[hold.Owner(owner)]
		*who, *note = cmp.Or(s.Who, *who), s.Note
	})
}

func (c *Client) inspect(ctx context.Context, name, key string) (Inspection, error) {
	if err := c.engine.Broken(); err != nil {
		return Inspection{Name: name}, err
	}
	s, err := inspect.Look(ctx, c.engine.Conn, c.space, key, cmp.Or(c.common.TokenKept(), hold.DefaultTokenLife))
	if err != nil {
		return Inspection{Name: name}, err
	}
	inspect.Answered(ctx)
	i := Inspection{
		Name: name, Kind: Kind(s.Kind), At: s.At,
		HeldSince: s.Since, Remaining: s.Remaining, Waiters: s.Waiters,
		Value: s.Value, Taken: s.Taken, All: s.All, State: s.State,
	}
	if p := s.Pause; p.Lasts() {
		i.Paused = &Pause{By: p.By, Because: p.Because, Since: p.Since, Until: p.Until}
	}
	for _, h := range s.Holders {
		i.Holders = append(i.Holders, Holder{Owner: Owner(h.Owner), Who: h.Said.Who, Permit: h.Permit, Count: h.Count, Write: h.Write,
			Number: h.Number, Quarantined: h.Over, Shards: h.Shards, Remaining: h.Remaining})
	}
	for _, w := range s.Queue {
		i.Queue = append(i.Queue, Waiter{Owner: Owner(w.Owner), Who: w.Said.Who, Since: w.Since, Write: w.Write})
	}
	return i, nil
}

// InspectAll inspects every name that matches the pattern, on every master. The pattern has the syntax of
// Redis's SCAN, and is compared with the names as they are in Redis. The pattern "" matches all names. With
// WithKeyPrefix, InspectAll inspects only keys with that prefix, and returns the names without the prefix.
//
// InspectAll leaves out free names, keys that are not synchronizers, keys of a Once whose work is not under
// way, barriers at which nobody waits, and limits from which something can be taken. It never leaves out a
// name that is paused. Any whole number counts as KindCount.
//
// The result is not a snapshot, because each name is inspected at its own instant. A name that exists
// during the whole call is returned once. A name that appears or disappears during the call is returned
// once or not at all. If an error comes with a Name, the error is about that name, and the other names
// follow. An error without a Name ends the sequence: ctx has ended, or some of the keys could not be read.
//
// InspectAll scans all keys of the servers, about 500 at a time, on a connection of its own. It inspects
// each hash and each whole number, and skips other strings. It uses at most half of the server's time. It
// remembers all names that it has returned.
func (c *Client) InspectAll(ctx context.Context, pattern string) iter.Seq2[Inspection, error] {
	pattern = cmp.Or(pattern, "*")
	return func(yield func(Inspection, error) bool) {
		if err := c.engine.Broken(); err != nil {
			yield(Inspection{}, errs.Wrap("inspect all", err))
			return
		}
		ctx, cancel := c.untilClosed(ctx)
		defer cancel()
		told := make(map[string]struct{})
		stopped := false
		err := inspect.Scan(ctx, c.engine.Conn, c.space, pattern, func(names []string) bool {
			for _, f := range c.inspectEach(ctx, names) {
				if _, again := told[f.Name]; again || ctx.Err() != nil || !f.stands() {
					continue
				}
				told[f.Name] = struct{}{}
				if !yield(f.Inspection, f.err) {
					stopped = true
					return false
				}
			}
			return ctx.Err() == nil
		})
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil && !stopped {
			yield(Inspection{}, errs.Wrap("inspect all", err))
		}
	}
}

// untilClosed returns a context that also ends when the Client closes, with ErrClosed as its
// cause.
func (c *Client) untilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if c.engine.Closing().Err() != nil {
		cancel(ErrClosed)
	}
	stop := context.AfterFunc(c.engine.Closing(), func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// found is the outcome of inspecting one name.
type found struct {
	Inspection
	err error
}

// stands reports whether there is a synchronizer at the name, or the inspection failed.
func (f found) stands() bool {
	if f.Paused != nil {
		return true
	}
	switch f.Kind {
	case KindFree, KindUnknown:
		return f.err != nil
	case KindLimiter:
		return f.Value <= 0 || f.err != nil
	case KindOnce, KindBarrier:
		return f.State == "working" || f.State == "open"
	default:
		return true
	}
}

// abreast is how many names are inspected at a time. They go out on the connections that lock
// requests use too, so they are few: lock requests should not wait for them.
const abreast = 8

// inspectEach inspects the names, and returns when every result is there.
func (c *Client) inspectEach(ctx context.Context, names []string) []found {
	all := make([]found, len(names))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(abreast, len(names)) {
		workers.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(names); n = int(next.Add(1)) - 1 {
				i, err := c.inspect(ctx, names[n], c.space.At(names[n]))
				if err != nil {
					err = errs.Wrap("inspect "+errs.Quote(names[n]), err)
				}
				all[n] = found{i, err}
			}
		})
	}
	workers.Wait()
	c.introduce(ctx, all)
	return all
}
