// A road is the way by which clients reach a FaultProxy: an address, TLS, a latency.

package redistest

import (
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Way sets a property of the road by which clients reach a [Proxy].
type Way func(*road)

type road struct {
	host   string
	tls    *tls.Config
	lag    time.Duration // one way
	jitter time.Duration // at most this much more
}

// OnIPv6 makes the proxy listen on [::1] in place of 127.0.0.1.
func OnIPv6() Way { return func(r *road) { r.host = "::1" } }

// OverTLS makes clients speak TLS with the proxy, which goes on to the server in plain text.
func OverTLS(config *tls.Config) Way { return func(r *road) { r.tls = config } }

// Lagging makes all bytes arrive later, in both directions: by lag, and up to jitter more.
// Their order stays.
func Lagging(lag, jitter time.Duration) Way { return func(r *road) { r.lag, r.jitter = lag, jitter } }

// ends returns the two connections of a link, as they are with this road between client and
// server.
func (r *road) ends(client, server net.Conn) (net.Conn, net.Conn) {
	if r.lag > 0 {
		client, server = newLagged(client, r), newLagged(server, r)
	}
	if r.tls != nil {
		client = tls.Server(client, r.tls)
	}
	return client, server
}

// lagged is a connection whose incoming bytes can be read only some time after they came.
type lagged struct {
	net.Conn
	road *road
	came chan arrival // closed at the end
	gone chan struct{}
	once sync.Once
	pump sync.WaitGroup
	rest []byte
}

// arrival is a piece of incoming bytes, and when it may be read.
type arrival struct {
	bytes []byte
	due   time.Time
}

func newLagged(c net.Conn, r *road) *lagged {
	l := &lagged{Conn: c, road: r, came: make(chan arrival, 1024), gone: make(chan struct{})}
	l.pump.Go(l.receive)
	return l
}

// receive ends when the connection does.
func (l *lagged) receive() {
	defer close(l.came)
	for {
		buf := make([]byte, 16<<10)
		n, err := l.Conn.Read(buf)
		if n > 0 {
			due := time.Now().Add(l.road.lag + rand.N(l.road.jitter+1))
			select {
			case l.came <- arrival{buf[:n], due}:
			case <-l.gone:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Read is called by one goroutine at a time.
func (l *lagged) Read(b []byte) (int, error) {
	for len(l.rest) == 0 {
		a, ok := <-l.came
		if !ok {
			return 0, io.EOF
		}
		timer := time.NewTimer(time.Until(a.due))
		select {
		case <-timer.C:
		case <-l.gone:
			timer.Stop()
		}
		l.rest = a.bytes
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

func (l *lagged) CloseWrite() error {
	closeWrite(l.Conn)
	return nil
}

func (l *lagged) Close() error {
	err := l.Conn.Close()
	l.once.Do(func() { close(l.gone) })
	l.pump.Wait()
	return err
}
