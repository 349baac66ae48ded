// What a server says when it turns a connection away is heard, whatever go-redis does first; no
// other error changes.

package dial

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// scripted is a connection on which the server has sent something before anything else happens. It
// may have closed it since.
type scripted struct {
	net.Conn
	sent   *strings.Reader
	closed error // of each write
}

func (s *scripted) Read(b []byte) (int, error)      { return s.sent.Read(b) }
func (s *scripted) Write(b []byte) (int, error)     { return len(b), s.closed }
func (s *scripted) SetReadDeadline(time.Time) error { return nil }

func TestTheFirstWordsOfAServerAreHeard(t *testing.T) {
	const away, inCluster = "-ERR max number of clients reached\r\n", "-ERR max number of clients + cluster connections reached\r\n"
	broken := errors.New("broken pipe")
	for _, tc := range []struct {
		name, sent  string
		closed      error // when the first write fails, with what
		write, read string
	}{
		{name: "served", sent: "+PONG\r\n"},
		{name: "turned away, and read", sent: away, read: "ERR max number of clients reached"},
		{name: "turned away by a cluster", sent: inCluster, read: "ERR max number of clients + cluster connections reached"},
		{name: "turned away before the first write", sent: away, closed: broken,
			write: "ERR max number of clients reached", read: "ERR max number of clients reached"},
		{name: "turned away in protected mode", sent: "-DENIED Redis is running in protected mode.\r\n", closed: broken,
			write: "DENIED Redis is running in protected mode.", read: "DENIED Redis is running in protected mode."},
		{name: "another error is an answer", sent: "-ERR unknown command 'HELLO'\r\n"},
		{name: "closed without a word", closed: broken, write: "broken pipe", read: io.EOF.Error()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			conn := Greet(&scripted{sent: strings.NewReader(tc.sent), closed: tc.closed})
			check := func(what string, err error, want string) {
				t.Helper()
				if (err == nil) != (want == "") || err != nil && !strings.HasSuffix(err.Error(), want) {
					t.Errorf("%s: %v, want %q", what, err, want)
				}
			}
			_, err := conn.Write([]byte("HELLO\r\n"))
			check("the write", err, tc.write)
			for range 2 { // go-redis reads on after an error
				n, err := conn.Read(make([]byte, 100))
				check("a read", err, tc.read)
				if tc.read != "" {
					continue
				}
				if n != len(tc.sent) {
					t.Errorf("read %d bytes, want %d", n, len(tc.sent))
				}
				break
			}
		})
	}
}

// Later on those words are a value or an answer like any other.
func TestOnlyTheFirstWordsOfAServerAreHeard(t *testing.T) {
	conn := Greet(&scripted{sent: strings.NewReader("+-ERR max number of clients reached\r\n")})
	for _, want := range []int{1, 36} {
		if n, err := conn.Read(make([]byte, want)); n != want || err != nil {
			t.Errorf("read %d bytes, %v, want %d", n, err, want)
		}
	}
}
