// What a user holds.

package lease

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/hold"
)

// Lease is one acquisition of something. It is valid until it is released or lost. Its methods may
// be called from any goroutine.
//
// A nil Lease, which a failed Lock returns, counts as one that has ended: its methods fail with
// ErrBadArgument, its contexts are cancelled, its token is 0.
type Lease hold.Lease

// Name returns the name of what is held, as the program gave it.
func (l *Lease) Name() string { return (*hold.Lease)(l).Name() }

// Token returns the fencing token of the hold: a number greater than that of every earlier hold of
// the same name. With it the protected resource can refuse writes of holders that have been
// overtaken. A lease and those that re-enter it share the token.
func (l *Lease) Token() int64 { return (*hold.Lease)(l).Token() }

// Owner returns the id under which the thing is held. Leases that were passed on within a process
// share one Owner: see Cohort.
func (l *Lease) Owner() Owner { return Owner((*hold.Lease)(l).Owner()) }

// HoldCount returns how many leases are on the hold, this one and those that re-entered it, as this
// process counts them; 0 if this lease has ended. It does no I/O.
func (l *Lease) HoldCount() int { return (*hold.Lease)(l).HoldCount() }

// Context returns a context for the work that the lease protects: parent, but also cancelled when
// the lease ends, with a cause that says why (ErrLost, ErrExpired, ErrReleased, ErrMaxHold,
// ErrSuperseded or ErrClosed). Locking the same name with this context, or with one made from it, re-enters this
// hold instead of waiting for it.
//
// Context may be called any number of times. Each context is freed when parent or the lease ends.
func (l *Lease) Context(parent context.Context) context.Context {
	return (*hold.Lease)(l).Context(parent)
}

// Done returns a channel that is closed when the lease has ended, in whatever way, and its contexts
// are cancelled.
func (l *Lease) Done() <-chan struct{} { return (*hold.Lease)(l).Done() }

// Err returns nil while the lease lasts. After that it returns why the lease ended: an error that matches
// ErrReleased, ErrLost, ErrExpired, ErrMaxHold, ErrSuperseded or ErrClosed. Its text says after how long, and
// for a loss why: "lease lost after 41s: Redis no longer has it ...".
func (l *Lease) Err() error { return (*hold.Lease)(l).Err() }

// Deadline returns when the lease ends if it is not renewed or extended before then. It is the local instant
// by which the holder is notified, somewhat earlier than the end in Redis.
func (l *Lease) Deadline() time.Time { return (*hold.Lease)(l).Deadline() }

// Extend makes the lease last at least d from now, whether it is fixed or renewed. It never
// shortens the lease. If the lease has ended, the error matches the reason. It matches ErrLost if
// Redis no longer has the hold, ErrNotReplicated if too few replicas acknowledge the new end,
// ErrBadArgument if d is shorter than MinLease, or ctx's error if ctx ends first. If the call fails
// and the lease has not ended, the lease lasts as long as it did before.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	return (*hold.Lease)(l).Extend(ctx, d)
}

// Release ends the lease. If that was the last lease of its hold, the thing is free for others when
// Release returns nil, or has been passed on to a waiter: see Cohort.
//
// If ctx is cancelled, Release goes on, for at most 5 s and no longer than the lease, so a deferred Release is always
// right. If the lease was released before, Release does nothing, and the error matches ErrReleased. If the lease was
// lost, the error matches ErrLost, whoever holds the thing now, and also ErrExpired if it was a fixed lease that ended
// as agreed. If MaxHold, a newer Lock or Close ended the lease, the error matches ErrMaxHold, ErrSuperseded or
// ErrClosed. If Redis cannot be reached, Release returns an error and goes on trying in the background, and the thing
// is free when the lease is over at the latest.
func (l *Lease) Release(ctx context.Context) error { return (*hold.Lease)(l).Release(ctx) }

// AtLeast makes what is held stay held until d from now, even if the lease is released sooner. It is
// for a short job that must not run twice within d, although the processes that start it have different
// clocks. Release then ends the lease and its renewal as ever, but nobody else, in this process or
// another, is granted the thing before d is over. If AtLeast is called several times, also through
// leases that re-entered, the latest time counts.
//
// AtLeast first makes sure that Redis has the hold for d, with a request if the lease does not last that
// long. So a process that dies leaves the thing held for d, or for its lease if that is longer. A fixed lease ends at
// its own time; what it held stays held for d. ForceRelease, or a loss, frees it. Detach forgets d: whoever attaches
// may call AtLeast again.
//
// It works for Mutex, FairMutex and the stripes of a Striped; for other kinds, and if d is negative, the
// error matches ErrBadArgument. If the lease has ended, the error matches the reason. It matches
// ErrNotReplicated if too few replicas acknowledge the new end, or ctx's error if ctx ends first. If AtLeast
// fails, Release frees what is held at once.
func (l *Lease) AtLeast(ctx context.Context, d time.Duration) error {
	return (*hold.Lease)(l).AtLeast(ctx, d)
}

// Asked returns a channel that is closed when somebody wants what is held: a caller in this process or another waits
// for it, or has called Ask. A holder that gives way to others then releases. The end of the lease does not close the
// channel.
//
// From the first call on the Client looks, with a request every 1.25 s and at each message, until somebody wants it or
// the lease ends. It notices an Ask at once, by a message, or within 1.25 s if that is lost; a waiter within 1.25 s;
// and a waiter in Java never. Asked works for Mutex, FairMutex and the stripes of a Striped; for other kinds it returns
// nil, a channel that is never closed.
func (l *Lease) Asked() <-chan struct{} { return (*hold.Lease)(l).Asked() }

// Note says what the holder is doing: "rebuilding index 7". Inspect shows it beside the holder until
// the lease ends, or until another Note replaces it, also one of a lease that re-entered; "" removes
// it. Only the first 256 bytes are kept.
//
// Note does no I/O: the Client writes the note to Redis in the background, within a second. If that
// fails, the lease goes on. Notes of at most 256 holds of a Client are shown at a time. Without
// holdfast.WithIdentity, Note does nothing.
func (l *Lease) Note(text string) { (*hold.Lease)(l).Note(text) }

// Detach ends the lease here without releasing what it holds. It returns the Owner with which
// Attach, in this process or another, takes the hold over. Until then the hold is not renewed: it
// lasts for a whole lease from the Detach, or, if the lease is fixed, until its end.
//
// The lease must be the only one on its hold, and of a kind that can be attached to. Otherwise the
// error matches ErrBadArgument. On any error the lease goes on, or has ended as the error says.
// After success the lease counts as released.
func (l *Lease) Detach(ctx context.Context) (Owner, error) {
	owner, err := (*hold.Lease)(l).Detach(ctx)
	return Owner(owner), err
}

// Note is Lease.Note of the lease that ctx carries, the innermost if it carries several. It is for work
// under Do, in a leader's term and the like. If ctx carries no lease, Note does nothing.
func Note(ctx context.Context, text string) { hold.Note(ctx, text) }

// Bare returns ctx without the leases that it carries: a Lock with it re-enters nothing. It is for
// code that wraps a Locker.
func Bare(ctx context.Context) context.Context { return hold.Bare(ctx) }
