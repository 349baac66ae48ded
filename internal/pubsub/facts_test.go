// The documents state the numbers of subscriptions as the code has them.

package pubsub

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
)

func TestTheDocumentsSayHowLongSubscriptionsLast(t *testing.T) {
	c := Config{}.withDefaults()
	doctest.Says(t, c.Linger, "docs/connecting.md", "as long as somebody waits, and {} longer")
	doctest.Says(t, c.Linger, "docs/architecture.md", "The subscription lingers for {}")
	doctest.Says(t, c.Linger, "docs/redisson-side-by-side.md", "kept for {} after the last waiter")
	doctest.Says(t, c.Heartbeat, "docs/connecting.md", "`PING` after {}")
	doctest.Says(t, c.PongTimeout, "docs/connecting.md", "nothing comes for {} more")
}
