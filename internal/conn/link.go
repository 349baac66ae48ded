// A link: the connection as go-redis sees it, which has the caller watched only
// once the answer is late.

package conn

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

const (
	// patience is how long an answer takes before it is late, and so how much later
	// than at once a caller may return who leaves before that.
	patience = 5 * time.Millisecond
	// fitting is how much a socket takes in without waiting for the other end, if
	// all that was written before has been answered.
	fitting = 4 << 10
)

// link is a connection as go-redis sees it. Only the wire's user reads and writes.
//
// To have the end of a context cut the connection takes as many allocations as all
// else that is done for a request, and nearly every request is answered before it
// could matter. So the first read gives up after patience, has the caller watched
// from then on, and goes on reading.
type link struct {
	net.Conn
	w       *wire
	kernel  bool      // what is written goes to a buffer of the kernel
	limit   time.Time // for reading, as go-redis has set it
	hurried bool      // the connection's own limit is earlier
}

// socket is a link that go-redis can look through, to see whether it was closed.
type socket struct {
	*link
	syscall.Conn
}

// link returns the connection for go-redis.
func (w *wire) link(conn net.Conn) net.Conn {
	l := &link{Conn: conn, w: w}
	if raw, ok := conn.(syscall.Conn); ok {
		l.kernel = true
		return socket{l, raw}
	}
	_, l.kernel = underneath(conn).(syscall.Conn)
	return l
}

// SetReadDeadline is called by go-redis before it reads the answers to a pipeline.
func (l *link) SetReadDeadline(t time.Time) error {
	l.limit, l.hurried = t, false
	if l.w.caller != nil {
		if early := time.Now().Add(patience); t.IsZero() || early.Before(t) {
			l.hurried, t = true, early
		}
	}
	return l.Conn.SetReadDeadline(t)
}

func (l *link) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if err == nil || n > 0 || !l.hurried || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	l.hurried = false
	l.w.watch()
	if err := l.Conn.SetReadDeadline(l.limit); err != nil {
		return 0, err
	}
	return l.Conn.Read(b)
}

// Write has the caller watched at once where writing may have to wait: a second try
// after a part was written is not for every connection (TLS).
func (l *link) Write(b []byte) (int, error) {
	if !l.kernel || len(b) > fitting {
		l.w.watch()
	}
	return l.Conn.Write(b)
}
