// The server that a Client uses, as an attribute of what it records.

package telemetry

import (
	"net"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
)

// Attributes of spans and metrics, as the conventions of OpenTelemetry name them.
const (
	keyServerAddress = attribute.Key("server.address")
	keyServerPort    = attribute.Key("server.port")
)

// server are the attributes that say which server a Client uses; none if that is not known.
type server []attribute.KeyValue

// serverAt returns the attributes of the server at addr: a host and a port, the path of a socket, or "".
func serverAt(addr string) server {
	host, port, err := net.SplitHostPort(addr)
	switch number, wrong := strconv.Atoi(port); {
	case addr == "":
		return nil
	case err != nil || wrong != nil:
		return server{keyServerAddress.String(printable(addr))}
	default:
		return server{keyServerAddress.String(printable(host)), keyServerPort.Int(number)}
	}
}

// of returns the attributes for what is recorded of that kind. A multi-lock and a quorum get none: they
// borrow the Telemetry of one Client, but are on several servers.
func (s server) of(kind string) server {
	if kind == "multi" || kind == "quorum" {
		return nil
	}
	return s
}
