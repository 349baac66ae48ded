// A server must come back on the same port after a kill, so the harness chooses its ports.

package redistest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Ports lie below the ephemeral range. In that range, an outgoing connection could take the port of
// a server that is down for a moment, and a client that dials the port could even connect to
// itself.
const (
	portBase  = 10000
	portCount = 10000
	busOffset = 10000 // a cluster node's bus port, as every server version computes it
)

// freePort returns a port on which no process listens, and, with withBus, none on its cluster
// bus port either. Another process may still take it first: callers retry.
func freePort(t testing.TB, withBus bool) int {
	t.Helper()
	for range 1000 {
		port := portBase + rand.IntN(portCount)
		if isFree(port) && (!withBus || isFree(port+busOffset)) {
			return port
		}
	}
	t.Fatalf("redistest: no free port among %d from %d", portCount, portBase)
	return 0
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
