// A connection that takes no deadlines, such as one through an SSH tunnel: timers take their place.

package dial

import (
	"net"
	"os"
	"sync"
	"time"
)

// timed is such a connection. If a read or a write is not done by its deadline, timed closes the
// connection, which is not used again after that anyway.
type timed struct {
	net.Conn

	mu          sync.Mutex // guards what follows
	read, write time.Time
}

// withDeadlines returns the connection, as a timed one if it takes no deadlines.
func withDeadlines(conn net.Conn) net.Conn {
	if conn.SetDeadline(time.Time{}) == nil {
		return conn
	}
	return &timed{Conn: conn}
}

func (t *timed) SetDeadline(at time.Time) error {
	_ = t.SetReadDeadline(at)
	return t.SetWriteDeadline(at)
}

func (t *timed) SetReadDeadline(at time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read = at
	return nil
}

func (t *timed) SetWriteDeadline(at time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.write = at
	return nil
}

func (t *timed) Read(b []byte) (int, error) {
	t.mu.Lock()
	limit := t.read
	t.mu.Unlock()
	return t.by(limit, t.Conn.Read, b)
}

func (t *timed) Write(b []byte) (int, error) {
	t.mu.Lock()
	limit := t.write
	t.mu.Unlock()
	return t.by(limit, t.Conn.Write, b)
}

// by calls do, for no longer than until limit; the zero time is no limit.
func (t *timed) by(limit time.Time, do func([]byte) (int, error), b []byte) (int, error) {
	if limit.IsZero() {
		return do(b)
	}
	timer := time.AfterFunc(time.Until(limit), func() { _ = t.Close() })
	n, err := do(b)
	if !timer.Stop() && err != nil {
		err = os.ErrDeadlineExceeded
	}
	return n, err
}

// Close closes the connection at once, without TLS's farewell.
func (t *timed) Close() error { return Underneath(t.Conn).Close() }
