// The documents state the numbers of waiting as the code has them.

package line

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
)

func TestTheDocumentsSayHowLongAWaiterWaits(t *testing.T) {
	doctest.Says(t, PollBound, "README.md", "once for all its goroutines: every {}")
	doctest.Says(t, PollBound, "docs/guarantees.md", "at least every {}")
	doctest.Says(t, PollBound, "docs/architecture.md", "or for {}", "within {}", "at least every {}")
	doctest.Says(t, PollBound, "docs/fairlock.md", "asks every {}")
	doctest.Says(t, 2*PollBound, "docs/fairlock.md", "again about\nevery {}", "every {} at the latest", "stand still, for {}")
	doctest.Says(t, beats, "docs/fairlock.md", "{} of them by one command")
	doctest.Says(t, 2*PollBound, "docs/architecture.md", "{} after the last time")
	doctest.Says(t, PollBound, "docs/faq.md", "up to {}")
	doctest.Says(t, PollBound, "docs/redisson-interop.md", "by poll, {}", "within {}")
	doctest.Says(t, PollBound, "docs/security.md", "by asking every {}")
	doctest.Says(t, PollBound, "latch/latch.go", "within {} of it")
	doctest.Says(t, beats, "docs/architecture.md", "{} at a time")
	doctest.Says(t, openFor, "docs/architecture.md", "left to them for {}")
	doctest.Says(t, openFor, "docs/keyspace.md", "for {}")
	doctest.Says(t, openFor, "docs/redisson-interop.md", "left to Java for {}")
	doctest.Says(t, PollBound, "docs/mutex.md", "a request every {}", "every {} at the latest")
	doctest.Says(t, PollBound, "docs/rwmutex.md", "every {} at the latest")
	doctest.Says(t, PollBound, "docs/semaphore.md", "asks every {}")
	doctest.Says(t, PollBound, "docs/latch.md", "asks every {}")
	doctest.Says(t, PollBound, "docs/managed.md", "waiters ask every {}")
	doctest.Says(t, PollBound, "docs/redisson-side-by-side.md", "and every {}", "looks within {}")
	doctest.Says(t, PollBound, "docs/hand-over.md", "at least every {}", "within {}")
	doctest.Says(t, openFor, "docs/hand-over.md", "leaves the lock to them for {}")
	doctest.Says(t, lately, "docs/hand-over.md", "in the last {}")
	doctest.Says(t, lately, "docs/mutex.md", "heard of a waiter within the last {}")
	doctest.Says(t, patience, "docs/semaphore.md", "has waited for {}")
}
