// A stand-in for a connection that could not be made.

package dial

import (
	"context"
	"net"
	"time"
)

// Stillborn returns what go-redis is given in place of a connection that could not be made. Every
// operation on it fails with err, the error of the dial. If the dialer returned that error instead,
// go-redis would print it to the standard error of the user's process.
func Stillborn(err error) net.Conn { return stillborn{err} }

type stillborn struct{ err error }

func (s stillborn) Read([]byte) (int, error)         { return 0, s.err }
func (s stillborn) Write([]byte) (int, error)        { return 0, s.err }
func (s stillborn) Close() error                     { return nil }
func (s stillborn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (s stillborn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s stillborn) SetDeadline(time.Time) error      { return nil }
func (s stillborn) SetReadDeadline(time.Time) error  { return nil }
func (s stillborn) SetWriteDeadline(time.Time) error { return nil }

// Unprinted returns the dialer for a go-redis client that dials of its own accord. dial must return when its
// context ends.
func Unprinted(dial Dialer) Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return Stillborn(err), nil
		}
		return Greet(conn), nil
	}
}
