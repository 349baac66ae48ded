// The life of a wire: its connection, from the dial until it is cut.

package conn

import (
	"context"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// keep is for how long a connection that is in use stays out of go-redis's pool.
// There it is looked at, which costs about as much as sending: whether it has been
// closed meanwhile, is too old, or needs new credentials. A connection that was
// closed while nobody used it is so found out before anything is sent, unless it
// was looked at just before; then the request counts as one that may have run.
const keep = 100 * time.Millisecond

// connection returns the wire's connection, from a new client after a reset.
func (w *wire) connection(now time.Time) *redis.Conn {
	switch {
	case w.rdb == nil:
		w.begin(now)
	case now.Sub(w.since) < keep:
		return w.held
	default:
		_ = w.held.Close()
	}
	w.held, w.since = w.rdb.Conn(), now
	return w.held
}

// begin begins a life of the wire, with a new client.
func (w *wire) begin(now time.Time) {
	options := *w.options
	options.Protocol = 2 // nothing is pushed to a wire, and so is not looked for
	life, dial, onConnect := w.lifeNow(), options.Dialer, options.OnConnect
	w.clock.epoch = now
	w.era = w.lane.era.Load()
	options.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return w.dial(ctx, life, network, addr, dial)
	}
	options.OnConnect = func(ctx context.Context, cn *redis.Conn) error {
		if onConnect != nil {
			if err := onConnect(ctx, cn); err != nil {
				return err
			}
		}
		w.ready.Store(true)
		return nil
	}
	w.rdb = redis.NewClient(&options)
}

// dial dials for one life of the wire, once, and ends with it: go-redis dials on
// a goroutine of its own, which outlives the caller that it dials for.
func (w *wire) dial(ctx context.Context, life int, network, addr string, dial dialer) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.mu.Lock()
	gone, spent := w.life != life || w.cut, w.spent
	if !gone && !spent {
		w.spent, w.dialing = true, cancel
	}
	w.mu.Unlock()
	switch {
	case gone:
		return nil, net.ErrClosed
	case spent:
		return nil, errSpent
	}

	conn, err := within(ctx, network, addr, dial)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	gone = w.life != life || w.cut
	if !gone {
		w.conn, w.dialing = conn, nil
	}
	w.mu.Unlock()
	if gone {
		drop(conn, nil)
		return nil, net.ErrClosed
	}
	return w.link(conn), nil
}

// within dials, and leaves the dial behind when ctx ends: not every dialer looks
// at its context, go-redis's own for TLS among them. What is left behind ends by
// the dialer's own timeout.
func within(ctx context.Context, network, addr string, dial dialer) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		conn, err := dial(ctx, network, addr)
		done <- result{conn, err}
	}()
	select {
	case r := <-done:
		return r.conn, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil { // beside an error there may be a nil *tls.Conn
				drop(r.conn, nil)
			}
		}()
		return nil, ctx.Err()
	}
}

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// hangUp cuts the connection under whoever uses it, if the wire is still in that
// life. It may be called from any goroutine; the wire is of no use until it is
// reset.
func (w *wire) hangUp(life int) {
	w.mu.Lock()
	if w.life != life {
		w.mu.Unlock()
		return
	}
	w.cut = true
	conn, dialing := w.conn, w.dialing
	w.mu.Unlock()
	drop(conn, dialing)
}

// reset drops the connection, so that the next request goes out on a new one,
// perhaps to another server. Only the wire's user calls it.
func (w *wire) reset() {
	w.mu.Lock()
	conn, dialing := w.conn, w.dialing
	w.conn, w.dialing, w.cut, w.spent = nil, nil, false, false
	w.life++
	w.mu.Unlock()
	drop(conn, dialing)
	w.clock.known = false
	if w.rdb != nil {
		_ = w.held.Close()
		_ = w.rdb.Close()
		w.rdb, w.held = nil, nil
	}
	w.ready.Store(false)
}

func drop(conn net.Conn, dialing context.CancelFunc) {
	if dialing != nil {
		dialing()
	}
	if conn == nil {
		return
	}
	_ = underneath(conn).Close() // TLS would first write a farewell, and wait for that
}

// underneath returns the connection that a TLS connection is on, and any other as
// it is.
func underneath(conn net.Conn) net.Conn {
	if secured, ok := conn.(interface{ NetConn() net.Conn }); ok {
		return secured.NetConn()
	}
	return conn
}

func (w *wire) lifeNow() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.life
}
