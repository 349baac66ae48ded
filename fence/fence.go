// Package fence checks fencing tokens. The check is in the resource that a lock protects, where the
// lock's holder writes. For each resource, a fence remembers the greatest token that it has seen, and
// refuses every smaller token. A smaller token comes from a former holder, because the lock was granted
// to another holder later.
//
// A lock with a lease needs a fence, because a process may be suspended for longer than its lease after
// it has last looked at the lock and before it writes (M. Kleppmann, "How to do distributed locking",
// 2016). The token of a Lease grows with each grant. docs/guarantees.md says how Holdfast makes tokens.
//
// Show the token to the fence before you read the data on which the write depends, and show it again
// with the write. A fence refuses a former holder only if a later holder has already shown its token.
// Suppose that holders show their tokens only with the write. A former holder can then write after the
// present holder has read the data, and the present holder overwrites that write.
//
// A fence protects only if the check of the token and the write are one step. They are one step in each
// of these forms:
//
//   - Guard: Do checks and writes under a mutex, in the memory of a process;
//   - SQL: Pass checks by a statement in the transaction that writes. With Wrote, the check is a
//     condition of the statement that writes;
//   - Redis: Set checks and writes by one script;
//   - Middleware: for a service of your own. Its handlers must write under a Guard, or by a statement
//     that checks the token.
//
// A fence lets the same token pass any number of times, because a holder may write more than once. If a
// token is 0 or less, such as the 0 of a context without a lease, the fence refuses it, and the error
// matches holdfast.ErrBadArgument.
//
// If a client shows a very great token, the fence then refuses all holders with smaller tokens. So let a
// client show tokens only if it may take the lock.
package fence

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// ErrStale says that a fence refused a token because a later holder has already shown a greater token.
var ErrStale = errors.New("fence: a later holder has been here before")

// Fence checks tokens, and refuses the tokens of former holders. Several goroutines may call its methods
// at the same time.
type Fence interface {
	// Pass remembers the token and returns nil, if no greater token has passed for the resource. If a
	// greater token has passed, the error matches ErrStale. If the token is not positive, the error
	// matches holdfast.ErrBadArgument.
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
