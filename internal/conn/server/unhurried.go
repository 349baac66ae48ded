// A connection whose timeouts cannot be changed, to a server that is given as long as it was seen to need.

package server

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn/dial"
)

// unhurried is a connection of a go-redis client whose timeouts cannot be changed any more.
type unhurried struct {
	net.Conn
	pace     *Pace
	counts   bool      // what was written last is a question whose answer may take long
	asked    time.Time // when the deadline of the present read was set
	patience time.Duration
}

// unhurriedSocket lets go-redis see whether the raw connection was closed.
type unhurriedSocket struct {
	*unhurried
	syscall.Conn
}

// Unhurried returns a dialer like by. Its connections wait for a reply as long as the pace allows.
func Unhurried(p *Pace, by dial.Dialer) dial.Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := by(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		u := &unhurried{Conn: conn, pace: p}
		if raw, ok := conn.(syscall.Conn); ok {
			return unhurriedSocket{u, raw}, nil
		}
		return u, nil
	}
}

// Write notes whether the time of the reply says anything about the server's pace: a server that is slow with
// the table of its cluster may answer a greeting at once.
func (u *unhurried) Write(b []byte) (int, error) {
	u.counts = bytes.Contains(b, []byte("cluster"))
	return u.Conn.Write(b)
}

func (u *unhurried) SetReadDeadline(t time.Time) error {
	u.asked, u.patience = time.Now(), u.pace.patience()
	if end := u.asked.Add(u.patience); t.IsZero() || end.Before(t) {
		t = end
	}
	return u.Conn.SetReadDeadline(t)
}

func (u *unhurried) Read(b []byte) (int, error) {
	n, err := u.Conn.Read(b)
	switch took := time.Since(u.asked); {
	case n > 0 && u.counts:
		u.pace.heard(took)
	case errors.Is(err, os.ErrDeadlineExceeded) && took >= u.patience:
		u.pace.raise(u.patience)
	}
	return n, err
}
