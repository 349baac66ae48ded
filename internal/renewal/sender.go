// What the scheduler needs of Redis.

package renewal

import (
	"context"
	"time"
)

// Sender carries renewals to servers. Its methods are called on several goroutines at once. All
// but Known are never called on the scheduler's goroutine.
type Sender interface {
	// Known returns what Node returns, or "" if finding that out takes a call of Node. It neither
	// does I/O nor waits.
	Known(key string) string

	// Node returns the address of the server that holds key. It may do I/O. A call that waits
	// does not hold up tasks whose server is found at once, as long as fewer than 16 calls wait.
	// ctx ends with Close, and after the try of the task (see Task.Urgency) or up to Resolution
	// before.
	Node(ctx context.Context, key string) (string, error)

	// Send renews the tasks of a batch, 1 to MaxBatch of them, on the server at addr, and answers
	// each of them. waiting is how many more wait for that server. try is the shortest in the batch;
	// every other try in it is less than twice that. An answer that takes longer than a try is late.
	// It is still worth waiting for, so ctx ends with Close, and when the last lease in the batch ends,
	// or after four tries, if that is sooner. Send must return when ctx ends. The next batch
	// with tries of that length waits for Send until its try is over; other batches do not. The batch
	// belongs to Send only until it returns.
	Send(ctx context.Context, addr string, batch []Task, try time.Duration, waiting int)

	// Fail answers a task that was not sent: Node returned err, or the scheduler was closed
	// (ErrClosed).
	Fail(t Task, err error)
}
