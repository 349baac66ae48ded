// A network connection in memory, for synctest bubbles. A write never waits for the reader, as
// with TCP and unlike with net.Pipe. Over net.Pipe a pipeline larger than the buffers
// deadlocks, because both ends write and neither reads.

package redistest

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// memPipe returns the two ends of a connection.
func memPipe() (net.Conn, net.Conn) {
	there, back := newStream(), newStream()
	return &memConn{in: back, out: there}, &memConn{in: there, out: back}
}

// stream is one direction: an unbounded buffer.
type stream struct {
	mu       sync.Mutex
	buf      []byte
	ended    bool          // the writer is done: EOF after what is buffered
	broken   bool          // the reader is gone
	deadline time.Time     // the reader's
	changed  chan struct{} // closed and replaced at every change
}

func newStream() *stream { return &stream{changed: make(chan struct{})} }

// change applies f and wakes every reader that waits.
func (s *stream) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *stream) write(b []byte) (n int, err error) {
	s.change(func() {
		switch {
		case s.ended:
			err = net.ErrClosed
		case s.broken:
			err = io.ErrClosedPipe
		default:
			s.buf = append(s.buf, b...)
			n = len(b)
		}
	})
	return n, err
}

func (s *stream) read(b []byte) (int, error) {
	for {
		n, changed, deadline, err := s.take(b)
		if n > 0 || err != nil {
			return n, err
		}
		if err := await(changed, deadline); err != nil {
			return 0, err
		}
	}
}

// take copies the buffered bytes; if there are none, it returns the channel and the deadline to
// wait for.
func (s *stream) take(b []byte) (n int, changed <-chan struct{}, deadline time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return 0, nil, time.Time{}, net.ErrClosed
	}
	if !s.deadline.IsZero() && !time.Now().Before(s.deadline) {
		return 0, nil, time.Time{}, os.ErrDeadlineExceeded
	}
	if len(s.buf) > 0 {
		n = copy(b, s.buf)
		s.buf = s.buf[n:]
		return n, nil, time.Time{}, nil
	}
	if s.ended {
		return 0, nil, time.Time{}, io.EOF
	}
	return 0, s.changed, s.deadline, nil
}

// await returns nil at the next change, or an error at the deadline.
func await(changed <-chan struct{}, deadline time.Time) error {
	if deadline.IsZero() {
		<-changed
		return nil
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-changed:
		return nil
	case <-timer.C:
		return os.ErrDeadlineExceeded
	}
}

// memConn is one end of a connection.
type memConn struct{ in, out *stream }

func (c *memConn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	return c.in.read(b)
}

func (c *memConn) Write(b []byte) (int, error) { return c.out.write(b) }

// CloseWrite lets the other end read the buffered bytes and then EOF.
func (c *memConn) CloseWrite() error {
	c.out.change(func() { c.out.ended = true })
	return nil
}

func (c *memConn) Close() error {
	c.CloseWrite()
	c.in.change(func() { c.in.broken = true })
	return nil
}

func (c *memConn) SetReadDeadline(t time.Time) error {
	c.in.change(func() { c.in.deadline = t })
	return nil
}

// SetWriteDeadline does nothing: a write never blocks.
func (c *memConn) SetWriteDeadline(time.Time) error { return nil }

func (c *memConn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

func (c *memConn) LocalAddr() net.Addr  { return memAddr{} }
func (c *memConn) RemoteAddr() net.Addr { return memAddr{} }

type memAddr struct{}

func (memAddr) Network() string { return "memory" }
func (memAddr) String() string  { return "memory" }
