// A stand-in for a connection that could not be made.

package dial

import (
	"context"
	"net"
	"time"
)

// Stillborn is given to go-redis in place of a connection that could not be made. Every
// operation on it fails with the error of the dial. If the dialer returned that error instead,
// go-redis would print it to the standard error of the user's process.
type Stillborn struct{ Err error }

func (s Stillborn) Read([]byte) (int, error)         { return 0, s.Err }
func (s Stillborn) Write([]byte) (int, error)        { return 0, s.Err }
func (s Stillborn) Close() error                     { return nil }
func (s Stillborn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (s Stillborn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s Stillborn) SetDeadline(time.Time) error      { return nil }
func (s Stillborn) SetReadDeadline(time.Time) error  { return nil }
func (s Stillborn) SetWriteDeadline(time.Time) error { return nil }

// Unprinted returns the dialer for a go-redis client that dials of its own accord. dial must return when its
// context ends.
func Unprinted(dial Dialer) Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return Stillborn{Err: err}, nil
		}
		return Greet(conn), nil
	}
}
