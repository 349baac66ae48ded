// A stand-in for a connection that could not be made.

package conn

import (
	"context"
	"net"
	"time"
)

// stillborn is given to go-redis in place of a connection that could not be made. Every
// operation on it fails with the error of the dial. If the dialer returned that error instead,
// go-redis would print it to the standard error of the user's process.
type stillborn struct{ err error }

func (s stillborn) Read([]byte) (int, error)         { return 0, s.err }
func (s stillborn) Write([]byte) (int, error)        { return 0, s.err }
func (s stillborn) Close() error                     { return nil }
func (s stillborn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (s stillborn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s stillborn) SetDeadline(time.Time) error      { return nil }
func (s stillborn) SetReadDeadline(time.Time) error  { return nil }
func (s stillborn) SetWriteDeadline(time.Time) error { return nil }

// quiet returns the dialer for a go-redis client that dials by itself. dial must return when its
// context ends.
func quiet(dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return stillborn{err}, nil
		}
		return greet(conn), nil
	}
}
