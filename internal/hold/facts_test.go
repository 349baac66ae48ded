// The documents state the numbers of leases as they are in the code.

package hold

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
)

func TestTheDocumentsSayHowLongLeasesLast(t *testing.T) {
	doctest.Says(t, DefaultLease, "docs/guarantees.md", "lease of {} survives")
	doctest.Says(t, DefaultLease, "docs/redisson-interop.md", "Both are {} by default")
	doctest.Says(t, wholeAfter, "docs/architecture.md", "the whole lease {} later")
	doctest.Says(t, wholeAfter, "docs/hand-over.md", "**{} later it asks", "the renewal after {}")
	doctest.Says(t, wholeAfter, "docs/mutex.md", "renew.lua, {} later", "and {} later one for its whole lease")
	doctest.Says(t, DefaultLease, "docs/redisson-side-by-side.md", "with a lease of {}")
	doctest.Says(t, DefaultLease, "docs/how-to/leader.md", "its lease is over: {} by default")
	doctest.Says(t, DefaultLocalHandoffs, "README.md", "{} times or for 10 ms")
	doctest.Says(t, DefaultLocalHandoffs, "docs/mutex.md", "{} times or for 10 ms")
	doctest.Says(t, DefaultLocalHandoffs, "docs/guarantees.md", "{} times or for")
	doctest.Says(t, DefaultLocalHandoffs, "docs/architecture.md", "{} times or for 10 ms")
	doctest.Says(t, DefaultLocalHandoffs, "options.go", "The default is {} times or 10 ms")
	doctest.Says(t, DefaultLocalHandoffs, "lease/options.go", "The default is {} times and 10 ms")
	doctest.Says(t, DefaultCohortTime, "README.md", "1000 times or for {}")
	doctest.Says(t, DefaultCohortTime, "docs/guarantees.md", "1000 times or for {}")
	doctest.Says(t, DefaultCohortTime, "docs/architecture.md", "1000 times or for {}")
	doctest.Says(t, DefaultCohortTime, "options.go", "The default is 1000 times or {}")
	doctest.Says(t, DefaultCohortTime, "lease/options.go", "The default is 1000 times and {}")
	doctest.Says(t, MaxLocalHandoffs, "lease/options.go", "n is at most {}")
}
