// Package fence is the other side of a fencing token: the resource that the holder writes to. A fence
// remembers the greatest token that it has seen for each resource, and refuses a smaller one, because it
// comes from a former holder, whose lock was granted to another since.
//
// A lock with a lease needs a fence: a process may be suspended for longer than its lease, between its last look at
// the lock and its write (M. Kleppmann, "How to do distributed locking", 2016). The token of a Lease grows with each
// grant; docs/guarantees.md says what it is made of.
//
// Show the token before you read what the write depends on, and again with the write. A fence refuses a holder only
// once a later one has shown its token. If holders showed it only with the write, a former holder could still write
// between the next one's read and write, and that write would be lost.
//
// A fence protects only if the check and the write are one step. In each form here they are:
//
//   - Guard: in the memory of a process, under a mutex;
//   - SQL: a statement in the transaction that writes, or a condition of the statement that writes
//     (Wrote);
//   - Redis: a script that writes only if the token passes;
//   - Middleware: for a service of your own, whose handlers write under a Guard.
//
// The same token passes again: a holder may write more than once. A token of 0 or less, such as the 0 of a
// context without a lease, is refused with an error that matches holdfast.ErrBadArgument.
//
// Whoever can show a token can shut out all holders with a smaller one. So let only those who may take the lock show
// one.
package fence

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// ErrStale says that a holder with a greater token has been here before.
var ErrStale = errors.New("fence: a later holder has been here before")

// Fence refuses the tokens of former holders. All methods may be called concurrently.
type Fence interface {
	// Pass returns nil if no greater token of the resource has passed before, and remembers this one.
	// Otherwise the error matches ErrStale. If the token is not positive, it matches holdfast.ErrBadArgument.
	Pass(ctx context.Context, resource string, token int64) error
}

// check returns an error unless that is a token.
func check(resource string, token int64) error {
	if token <= 0 {
		return fmt.Errorf("fence: %q: %d is no token: %w", resource, token, errs.BadArgument)
	}
	return nil
}

func stale(resource string, token int64) error {
	return fmt.Errorf("%w: %q, token %d", ErrStale, resource, token)
}
