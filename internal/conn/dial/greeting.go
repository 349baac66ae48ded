// A server that has no room, or is in protected mode, turns a connection away with an error, before it was
// asked anything.

package dial

import (
	"bytes"
	"cmp"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn/fault"
)

// protected begins what a server in protected mode says.
const protected = "DENIED "

// farewell is how long to wait for the error of a server that has closed the connection.
const farewell = 5 * time.Millisecond

// turnedAway is the error of a connection that the server has turned away. It is no reply: the
// server has closed the connection.
type turnedAway struct{ words string }

func (t turnedAway) Error() string { return "the server turned the connection away: " + t.words }

// greeted is a connection on which the first bytes from the server are looked at. A server that
// has no room sends its error and closes. go-redis takes that error for the answer to its HELLO,
// goes on, and reports only that the connection is closed; greeted reports the server's words.
//
// The fields change in the handshake only, which one goroutine makes.
type greeted struct {
	net.Conn
	heard   bool  // the first bytes have come, or will not
	refusal error // what they say, if the server has turned the connection away; go-redis reads on
}

// Greet returns conn as a connection that reports the server's words. It returns a TLS connection
// as it is: on that a server that has no room says nothing.
func Greet(conn net.Conn) net.Conn {
	if _, secured := conn.(interface{ NetConn() net.Conn }); secured {
		return conn
	}
	g := &greeted{Conn: conn}
	if raw, ok := conn.(syscall.Conn); ok {
		return struct { // go-redis looks at the raw connection, to see whether it was closed
			*greeted
			syscall.Conn
		}{g, raw}
	}
	return g
}

func (g *greeted) Read(b []byte) (int, error) {
	if g.refusal != nil {
		return 0, g.refusal
	}
	n, err := g.Conn.Read(b)
	if !g.heard && n > 0 {
		g.hear(b[:n])
	}
	if g.refusal != nil {
		return 0, g.refusal
	}
	return n, err
}

// Write reads what the server has sent if it has closed the connection before the first write:
// go-redis would not read after that.
func (g *greeted) Write(b []byte) (int, error) {
	if g.refusal != nil {
		return 0, g.refusal
	}
	n, err := g.Conn.Write(b)
	if err == nil || g.heard || g.Conn.SetReadDeadline(time.Now().Add(farewell)) != nil {
		return n, err
	}
	first := make([]byte, 128)
	length, _ := g.Conn.Read(first)
	g.hear(first[:length])
	return n, cmp.Or(g.refusal, err)
}

// hear looks at the first bytes from the server.
func (g *greeted) hear(first []byte) {
	g.heard = true
	line, _, _ := bytes.Cut(first, []byte("\r\n"))
	if text := string(line); strings.HasPrefix(text, "-"+fault.TooManyClients) || strings.HasPrefix(text, "-"+protected) {
		g.refusal = turnedAway{text[1:]}
	}
}
