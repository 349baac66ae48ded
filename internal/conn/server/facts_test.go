// The documents state the numbers of the connections as the code has them.

package server

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
)

func TestTheDocumentsSayHowConnectionsAreMadeAndUsed(t *testing.T) {
	const connecting, architecture = "docs/connecting.md", "docs/architecture.md"
	doctest.Says(t, maxWires, connecting, "up to {} for calls", "up to {} to each master, for the calls that wait for replicas")
	doctest.Says(t, late, architecture, "a read that has gone on for {}")
	doctest.Says(t, DialTimeout, connecting, "`DialTimeout`, but at most {}")
	doctest.Says(t, handshakeTimeout, connecting, "`OnConnect` included, has {}")
	doctest.Says(t, ioTimeout, connecting, "`WriteTimeout`, but at most {}")
	doctest.Says(t, firstRest, connecting, "a random pause of up to {}, 200 ms")
	doctest.Says(t, maxRest, connecting, "and so on to {}")
	doctest.Says(t, SweepEvery, connecting, "exact to {}")
	doctest.Says(t, tellFor, "docs/decisions/0065-quiet-scripts.md", "waits at most {}, or until the call's context ends")
}
