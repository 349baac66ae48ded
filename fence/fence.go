// Package fence checks fencing tokens where a lock's holder writes: in the resource that the lock
// protects. A fence remembers the greatest token that it has seen for each resource, and refuses every
// smaller token: a smaller token comes from a former holder, because the lock was granted to another
// holder later.
//
// A lock with a lease needs a fence: between its last look at the lock and its write, a process may be suspended for
// longer than its lease (M. Kleppmann, "How to do distributed locking", 2016). The token of a Lease grows with each
// grant. docs/guarantees.md says how Holdfast makes tokens.
//
// Show the token to the fence before you read what the write depends on, and again with the write. A fence refuses a
// holder only if a later holder has shown its token. Suppose that holders show tokens only with the write. A former
// holder can then write after the present holder has read, and the present holder overwrites that write.
//
// A fence protects only if the check and the write are one step. In each of these forms they are one
// step:
//
//   - Guard: in the memory of a process, under a mutex;
//   - SQL: a statement in the transaction that writes, or a condition of the statement that writes
//     (Wrote);
//   - Redis: a script that writes only if the token passes;
//   - Middleware: for a service of your own, whose handlers write under a Guard.
//
// The same token may pass any number of times, because a holder may write more than once. A token of 0 or less, such as
// the 0 of a context without a lease, is refused with an error that matches holdfast.ErrBadArgument.
//
// A client that shows a great token shuts out all holders with smaller tokens. So let only those clients show tokens
// that may take the lock.
package fence

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// ErrStale says that a fence refused a token because a later holder has already shown a greater one.
var ErrStale = errors.New("fence: a later holder has been here before")

// Fence refuses the tokens of former holders. All methods may be called concurrently.
type Fence interface {
	// Pass returns nil if no greater token has passed for the resource, and remembers this token. Otherwise the error
	// matches ErrStale. If the token is not positive, the error matches holdfast.ErrBadArgument.
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
