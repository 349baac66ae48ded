// A connection that was never made.

package conn

import (
	"context"
	"net"
	"time"
)

// stillborn is what go-redis is given in place of a connection that could not be made:
// all that is done on it fails with the error of the dial. go-redis prints each error
// that a dialer returns to the standard error of the user's process.
type stillborn struct{ err error }

func (s stillborn) Read([]byte) (int, error)         { return 0, s.err }
func (s stillborn) Write([]byte) (int, error)        { return 0, s.err }
func (s stillborn) Close() error                     { return nil }
func (s stillborn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (s stillborn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s stillborn) SetDeadline(time.Time) error      { return nil }
func (s stillborn) SetReadDeadline(time.Time) error  { return nil }
func (s stillborn) SetWriteDeadline(time.Time) error { return nil }

// quiet returns the dialer for a go-redis client that dials by itself.
func quiet(dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := within(ctx, network, addr, dial)
		if err != nil {
			return stillborn{err}, nil
		}
		return conn, nil
	}
}
