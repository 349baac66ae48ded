// What a user holds.

package lease

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/hold"
)

// Lease is one acquisition of a lock, of permits or of another thing. It is valid until it is released or
// lost. Any goroutine may call its methods.
//
// A failed Lock returns a nil *Lease. A nil *Lease counts as a lease that has ended: its methods fail with
// ErrBadArgument, its contexts are cancelled, and its token is 0.
type Lease hold.Lease

// Name returns the name of the lock or other thing, as the program gave it.
func (l *Lease) Name() string { return (*hold.Lease)(l).Name() }

// Token returns the fencing token of the hold. It is greater than the token of every earlier hold of the
// same name. With the token, the protected resource can refuse the writes of a holder after a later holder
// has written. All leases of one hold have the same token.
func (l *Lease) Token() int64 { return (*hold.Lease)(l).Token() }

// Owner returns the id under which Redis has the hold. When a lock is passed on within a process, the new
// lease has the Owner of the old lease: see Cohort.
func (l *Lease) Owner() Owner { return Owner((*hold.Lease)(l).Owner()) }

// HoldCount returns how many leases are on the hold, as this process counts them. This lease and those that
// re-entered the lock count. HoldCount returns 0 if this lease has ended. It does no I/O.
func (l *Lease) HoldCount() int { return (*hold.Lease)(l).HoldCount() }

// Context returns a context for the work that the lease protects. The returned context is derived from
// parent, and is also cancelled when the lease ends. Its cause then says why: ErrLost, ErrExpired,
// ErrReleased, ErrMaxHold, ErrSuperseded or ErrClosed. If you lock the same name with this context, or with
// one derived from it, Lock re-enters the hold and does not wait.
//
// Context may be called any number of times. Each context is freed when parent or the lease ends.
func (l *Lease) Context(parent context.Context) context.Context {
	return (*hold.Lease)(l).Context(parent)
}

// Done returns a channel that is closed when the lease has ended, for any reason, and its contexts are
// cancelled.
func (l *Lease) Done() <-chan struct{} { return (*hold.Lease)(l).Done() }

// Err returns nil while the lease lasts. After that it returns an error that says why the lease ended. The
// error matches ErrReleased, ErrLost, ErrExpired, ErrMaxHold, ErrSuperseded or ErrClosed. Its text says how
// long the lease lasted. For a lost lease the text also says why: "lease lost after 41s: Redis no longer
// has it ...".
func (l *Lease) Err() error { return (*hold.Lease)(l).Err() }

// Deadline returns when, on this process's clock, the lease ends if nobody renews or extends it before. The
// holder is notified at the deadline, which is somewhat earlier than the end of the lease in Redis.
func (l *Lease) Deadline() time.Time { return (*hold.Lease)(l).Deadline() }

// Extend makes the lease last for at least d from now, whether it is fixed or renewed. It never shortens
// the lease. If the lease has ended, the error matches the reason. Otherwise the error matches ErrLost if
// Redis no longer has the hold, ErrNotReplicated if too few replicas acknowledge the new end,
// ErrBadArgument if d is shorter than MinLease, or ctx's error if ctx ends first. If Extend fails and the
// lease has not ended, the lease lasts as long as it did before.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	return (*hold.Lease)(l).Extend(ctx, d)
}

// Release ends the lease. When the last lease of a hold is released and Release has returned nil, the lock
// is free for others, or has already been passed on to a waiter: see Cohort.
//
// If ctx is cancelled, Release goes on for at most 5 s, but not longer than the lease lasts. So a deferred
// Release is always right. If the lease was already released, Release does nothing, and the error matches
// ErrReleased. If the lease was lost, the error matches ErrLost, no matter who holds the lock now. If it
// was a fixed lease that ended as agreed, the error also matches ErrExpired. If MaxHold, a newer Lock or
// Close ended the lease, the error matches ErrMaxHold, ErrSuperseded or ErrClosed. If Redis cannot be
// reached, Release returns an error and goes on trying in the background. Then the lock is free when the
// lease is over, or earlier.
func (l *Lease) Release(ctx context.Context) error { return (*hold.Lease)(l).Release(ctx) }

// AtLeast keeps the lock held until d from now, even if the lease is released sooner. Use it for a short
// job that must not run twice within d, although several processes start it, each by its own clock. After
// AtLeast, Release ends the lease and its renewal as usual. But until d is over nobody else, in this
// process or another, is granted the lock. If AtLeast is called several times on one hold, the latest end
// counts.
//
// AtLeast first makes sure that Redis keeps the hold for d. If the lease does not last that long, AtLeast
// sends one request. So if the process dies, the lock stays held for d, or for the rest of the lease if
// that is longer. A fixed lease ends at its own time, but the lock stays held until d is over. If somebody
// calls ForceRelease, or if Redis loses the hold, the lock is free earlier. Detach forgets d, but the
// caller of Attach may call AtLeast again.
//
// AtLeast works for Mutex, FairMutex and the stripes of a Striped. For other kinds, and if d is negative,
// the error matches ErrBadArgument. If the lease has ended, the error matches the reason. Otherwise the
// error matches ErrNotReplicated if too few replicas acknowledge the new end, or ctx's error if ctx ends
// first. If AtLeast fails, Release frees the lock at once.
func (l *Lease) AtLeast(ctx context.Context, d time.Duration) error {
	return (*hold.Lease)(l).AtLeast(ctx, d)
}

// Asked returns a channel that is closed when somebody else wants the lock: a caller in this process or
// another waits for the lock, or has called Ask. A holder that wants to give way to others then releases
// its lease. The end of the lease does not close the channel.
//
// After the first call of Asked, the Client asks Redis whether somebody wants the lock, every 1.25 s and
// after each message. The Client stops asking when somebody wants the lock or the lease ends. The Client
// notices an Ask at once by a message, or within 1.25 s if the message is lost. It notices a waiter within
// 1.25 s. It never notices a waiter in Java. Asked works for Mutex, FairMutex and the stripes of a Striped.
// For other kinds it returns nil, which is a channel that is never closed.
func (l *Lease) Asked() <-chan struct{} { return (*hold.Lease)(l).Asked() }

// Note says what the holder is doing, for example "rebuilding index 7". Inspect shows the text of the
// holder until the lease ends, or until another Note replaces it. A Note on another lease of the same hold
// replaces it too. The text "" removes it. Only the first 256 bytes are kept.
//
// Note does no I/O: the Client writes the text to Redis in the background, within a second. If the write
// fails, the lease goes on. Inspect can show the notes of at most 256 holds of a Client at a time. Without
// holdfast.WithIdentity, Note does nothing.
func (l *Lease) Note(text string) { (*hold.Lease)(l).Note(text) }

// Detach ends the lease in this process, but does not release the lock. It returns the Owner with which
// Attach, in this process or another, takes over the hold. Between Detach and Attach nobody renews the
// hold. The hold lasts for one whole lease from the Detach or, if the lease is fixed, until the end of the
// lease.
//
// The lease must be the only one on its hold, and its kind must have an Attach. Otherwise the error matches
// ErrBadArgument. If Detach fails, the lease goes on, or has ended as the error says. If Detach succeeds,
// the lease counts as released.
func (l *Lease) Detach(ctx context.Context) (Owner, error) {
	owner, err := (*hold.Lease)(l).Detach(ctx)
	return Owner(owner), err
}

// Note calls Lease.Note on the lease that ctx carries. If ctx carries several leases, Note uses the
// innermost. Use it in work that gets only a context, such as work under Do or in a leader's term. If ctx
// carries no lease, Note does nothing.
func Note(ctx context.Context, text string) { hold.Note(ctx, text) }

// Bare returns ctx without the leases that it carries. So a Lock with the returned context re-enters
// nothing. Bare is for code that wraps a Locker.
func Bare(ctx context.Context) context.Context { return hold.Bare(ctx) }
