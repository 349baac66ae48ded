// Who holds what.

package holdfast

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/inspect"
	"github.com/holdfast-go/holdfast/internal/lockhash"
	"github.com/holdfast-go/holdfast/lease"
)

// Kind is what an Inspection found at a name. Redis does not say what a key is
// for, so it is told from the key's type and from what stands beside it.
type Kind string

// The kinds.
const (
	// KindFree: nobody holds anything there. A free lock leaves no trace of what
	// it is.
	KindFree Kind = "free"
	// KindMutex: a lock that is held or waited for. Mutex and FairMutex are one
	// lock in Redis.
	KindMutex Kind = "mutex"
	// KindRWLock: a read/write lock that is held or waited for.
	KindRWLock Kind = "rwlock"
	// KindPermits: a semaphore with leased permits, of which some are taken.
	KindPermits Kind = "permits"
	// KindLatch: a latch that Holdfast has used within a day.
	KindLatch Kind = "latch"
	// KindCount: a whole number. It may be a semaphore, a semaphore with leased
	// permits of which none is taken, a latch of Redisson's, or any other
	// program's number. Redis does not tell them apart.
	KindCount Kind = "count"
	// KindUnknown: something that is no synchronizer.
	KindUnknown Kind = "unknown"
)

// NoExpiry is a remaining time that has no end.
const NoExpiry = lockhash.NoExpiry

// Inspection is what stood at a name at one instant.
type Inspection struct {
	// Name is the name that was asked for, or, from InspectAll, as it stands in
	// Redis.
	Name string
	Kind Kind
	// At is the instant, on the server's clock.
	At time.Time

	// Holders are those who hold a mutex or a read/write lock, and the permits of a
	// KindPermits that are taken: one for each, without its owner. Readers and permits
	// whose lease is over are not among them. Of a semaphore without leases and of a
	// latch Redis does not know who holds them.
	Holders []Holder
	// HeldSince is when the hold of a lock's only holder, or of a writer, began,
	// on the server's clock; zero if that is not known. It is known if the holder
	// is a Client of Holdfast and its fencing token agrees with the time at
	// which that was written. It is not known for Java, which leaves no token;
	// for readers; and after a clock was set back. A renewed lock that
	// has been held for more than 7 days is no longer known either, and one that
	// is then passed on by Detach and Attach counts from there.
	HeldSince time.Time
	// Remaining is how long it stays as it is if nobody renews or releases; 0 if
	// it is free. For permits it is until the last one taken runs out.
	Remaining time.Duration
	// Waiters is how many wait with Holdfast; Java's waiters are not seen. For a
	// mutex it is all who wait for it as a FairMutex, and one for each process in
	// which somebody waits for it as a Mutex. It is -1 if it is not known, as for
	// any other kind than locks.
	Waiters int

	// Value is the number of a KindCount, the count of a latch, or how many
	// permits of a KindPermits are free.
	Value int64
	// Taken is how many permits of a KindPermits are taken.
	Taken int
}

// Holder is one who holds a lock, or a permit that is taken.
type Holder struct {
	// Owner is whose hold it is; zero for a permit, of which Redis does not know. Its
	// String is a secret, its Short is not.
	Owner Owner
	// Permit is the id of a permit, as PermitSemaphore.IDs has it: whoever knows it can
	// release the permit, so it is left out of JSON, as of a log. It is empty for a lock.
	Permit string `json:"-"`
	// Count is how many leases are on the hold.
	Count int
	// Write says that it holds the write side of a read/write lock.
	Write bool
	// Remaining is how long it holds if it neither renews nor releases. NoExpiry:
	// without end.
	Remaining time.Duration
}

// String returns the holder as one may log it: with a shortened owner or permit.
func (h Holder) String() string {
	text := h.Owner.Short()
	if h.Permit != "" {
		text = "permit " + h.Permit[:min(8, len(h.Permit))]
	}
	if h.Write {
		text += " (write)"
	}
	if h.Count != 1 {
		text += fmt.Sprintf(" x%d", h.Count)
	}
	return text
}

// String returns the inspection as one line, with shortened owners.
func (i Inspection) String() string {
	text := fmt.Sprintf("%s: %s", lease.Quote(i.Name), i.Kind)
	switch i.Kind {
	case KindCount, KindLatch:
		text += fmt.Sprintf(" %d", i.Value)
	case KindPermits:
		text += fmt.Sprintf(", %d free, %d taken", i.Value, i.Taken)
	}
	if len(i.Holders) > 0 && i.Kind != KindPermits {
		text += fmt.Sprintf(", held by %v", i.Holders)
	}
	if !i.HeldSince.IsZero() {
		text += fmt.Sprintf(" for %v", i.At.Sub(i.HeldSince))
	}
	if i.Remaining > 0 {
		text += fmt.Sprintf(", %v left", i.Remaining)
	}
	if i.Waiters > 0 {
		text += fmt.Sprintf(", %d waiting", i.Waiters)
	}
	return text
}

// Inspect tells what stands at a name: who holds it, since when and for how long,
// and who waits. It asks the master once, writes nothing, and can be asked about
// any name; what is no synchronizer is KindUnknown. A lock that more than some hundred
// readers hold is asked for about 256 of them at a time: a reader that holds it from the beginning
// to the end is among the Holders; one that comes or goes meanwhile may be or not. A failover
// meanwhile may cost some.
//
// It retries what passes until ctx ends. Otherwise the error matches ErrDenied,
// ErrBadArgument or ErrClosed. What stands beside the name and may not be read
// counts as not known.
func (c *Client) Inspect(ctx context.Context, name string) (Inspection, error) {
	i, err := c.inspect(ctx, name, c.mapped(name))
	if err != nil {
		err = errs.Wrap("inspect "+lease.Quote(name), err)
	}
	return i, err
}

func (c *Client) inspect(ctx context.Context, name, key string) (Inspection, error) {
	if c.err != nil {
		return Inspection{Name: name}, c.err
	}
	s, err := inspect.Look(ctx, c.engine.Conn, key)
	if err != nil {
		return Inspection{Name: name}, err
	}
	i := Inspection{
		Name: name, Kind: Kind(s.Kind), At: s.At,
		HeldSince: s.Since, Remaining: s.Remaining, Waiters: s.Waiters,
		Value: s.Value, Taken: s.Taken,
	}
	for _, h := range s.Holders {
		i.Holders = append(i.Holders, Holder{Owner: h.Owner, Permit: h.Permit, Count: h.Count, Write: h.Write, Remaining: h.Remaining})
	}
	return i, nil
}

// InspectAll inspects every name that matches the pattern, in the syntax of Redis's SCAN and
// as names stand in Redis; "" matches all. It asks every master. It leaves out what is free
// or is no synchronizer; but any whole number counts as KindCount.
//
// It is no snapshot: each Inspection is of its own instant. A name that stands all the time
// comes once; a name that comes or goes meanwhile comes once or not at all. An error with a
// Name is about that name, and others follow. An error without a Name is the last: ctx has
// ended, or some of the keys could not be read.
//
// It scans all keys of the servers, some hundred at a time, on a connection of its own, and
// remembers the names that it has returned. It inspects each hash and each number, and skips
// other strings. It takes no more than half of the server's time.
func (c *Client) InspectAll(ctx context.Context, pattern string) iter.Seq2[Inspection, error] {
	if pattern == "" {
		pattern = "*"
	}
	return func(yield func(Inspection, error) bool) {
		if c.err != nil {
			yield(Inspection{}, errs.Wrap("inspect all", c.err))
			return
		}
		ctx, cancel := c.untilClosed(ctx)
		defer cancel()
		told := make(map[string]struct{})
		stopped := false
		err := inspect.Scan(ctx, c.engine.Conn, pattern, func(names []string) bool {
			for _, f := range c.inspectEach(ctx, names) {
				if ctx.Err() != nil {
					return false
				}
				if _, again := told[f.Name]; again || f.err == nil && (f.Kind == KindFree || f.Kind == KindUnknown) {
					continue
				}
				told[f.Name] = struct{}{}
				if !yield(f.Inspection, f.err) {
					stopped = true
					return false
				}
			}
			return true
		})
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil && !stopped {
			yield(Inspection{}, errs.Wrap("inspect all", err))
		}
	}
}

// untilClosed returns a context that also ends, with ErrClosed as its cause, when
// the Client closes.
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

// found is what became of one name.
type found struct {
	Inspection
	err error
}

// abreast is how many names are inspected at a time, on the connections on which locks
// are asked for too: few, so that these do not wait.
const abreast = 8

// inspectEach inspects the names and returns when all is known.
func (c *Client) inspectEach(ctx context.Context, names []string) []found {
	all := make([]found, len(names))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(abreast, len(names)) {
		workers.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(names); n = int(next.Add(1)) - 1 {
				i, err := c.inspect(ctx, names[n], names[n])
				if err != nil {
					err = errs.Wrap("inspect "+lease.Quote(names[n]), err)
				}
				all[n] = found{i, err}
			}
		})
	}
	workers.Wait()
	return all
}
