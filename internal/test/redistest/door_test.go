package redistest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// visitor is a bare connection to a proxy.
type visitor struct {
	net.Conn
	t *testing.T
}

func visit(t *testing.T, p *FaultProxy) visitor {
	t.Helper()
	v, err := try(t, p)
	Must(t, err)
	return v
}

func try(t *testing.T, p *FaultProxy) (visitor, error) {
	c, err := net.Dial("tcp", p.Addr())
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return visitor{c, t}, err
}

// hear returns what arrives within that time, up to the end of a line.
func (v visitor) hear(within time.Duration) (string, error) {
	v.SetReadDeadline(time.Now().Add(within))
	return bufio.NewReader(v.Conn).ReadString('\n')
}

func (v visitor) wantPong() {
	v.t.Helper()
	v.Write([]byte("PING\r\n"))
	if line, err := v.hear(patience); line != "+PONG\r\n" {
		v.t.Errorf("PING is answered %q, %v", line, err)
	}
}

func TestDoorsMeetNewConnectionsOnly(t *testing.T) {
	for _, tc := range []struct {
		name string
		door Door
		want func(v visitor) bool // for a connection that was accepted
	}{
		{"mute", Mute, func(v visitor) bool {
			v.Write([]byte("PING\r\n"))
			_, err := v.hear(50 * time.Millisecond)
			return isTimeout(err)
		}},
		{"slam", Slam, func(v visitor) bool {
			_, err := v.hear(patience)
			return errors.Is(err, syscall.ECONNRESET)
		}},
		{"change", Change, func(v visitor) bool {
			if _, err := v.hear(50 * time.Millisecond); !isTimeout(err) {
				return false
			}
			v.Write([]byte("PING\r\n"))
			_, err := v.hear(patience)
			return errors.Is(err, syscall.ECONNRESET)
		}},
		{"full", Full, func(v visitor) bool {
			line, _ := v.hear(patience)
			_, err := v.hear(patience)
			return strings.HasPrefix(line, "-ERR max number of clients") && errors.Is(err, io.EOF)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := Proxy(t, Server(t).Addr())
			before := visit(t, p)
			before.wantPong()
			p.Receive(tc.door)
			// A reset may arrive before the kernel reports that the connection is made.
			v, err := try(t, p)
			if err == nil && !tc.want(v) || err != nil && (tc.door != Slam || !errors.Is(err, syscall.ECONNRESET)) {
				t.Errorf("the door does something else: %v", err)
			}
			before.wantPong()
			p.Receive(Open)
			visit(t, p).wantPong()
		})
	}
}

// Commands that are under way together are delayed together, not one after the other.
func TestALagIsNoQueue(t *testing.T) {
	Bubble(t, func(t *testing.T) {
		const lag, commands = 20 * time.Millisecond, 50
		p := Mini(t).Proxy()
		Lagging(lag, 0)(&p.road)
		conn, err := p.Dial(t.Context(), "", "")
		Must(t, err)
		began := time.Now()
		for range commands {
			conn.Write([]byte("*1\r\n$4\r\nPING\r\n"))
			time.Sleep(time.Millisecond) // so that they do not arrive at once
		}
		r := bufio.NewReader(conn)
		for i := range commands {
			Must(t, Err(r.ReadString('\n')))
			if at, want := time.Since(began), max(time.Duration(i)*time.Millisecond+2*lag, commands*time.Millisecond); at != want {
				t.Errorf("command %d is answered after %v, want %v", i, at, want)
			}
		}
		conn.Close()
	})
}
