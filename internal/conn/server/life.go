// The life of a wire: how it is made, cut and ended.

package server

import (
	"context"
	"math/rand/v2"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn/dial"
	"github.com/holdfast-go/holdfast/internal/conn/fault"
)

const (
	// keep is how long a connection in use stays out of go-redis's pool. When go-redis hands a
	// connection out of its pool, it checks whether the connection has been closed meanwhile,
	// is too old, or needs new credentials. That check costs about as much as sending. It finds
	// a connection that was closed while idle before anything is sent. If the check was made
	// less than keep ago, it is skipped, and a request on such a connection counts as one that
	// may have run.
	keep = 100 * time.Millisecond
	// handshakeTimeout bounds everything after the dial, the user's credentials provider and
	// OnConnect included. A slow server has longer: it has to reply a few times.
	handshakeTimeout = 5 * time.Second
	// leastLife is how long a connection may be used, whatever the user's ConnMaxLifetime is. It is
	// longer than the handshake may take: connections that are too old as soon as they are made would
	// be replaced without end.
	leastLife = 2 * handshakeTimeout
)

// connect makes a wire: it dials, shakes hands and asks for the server's time. ctx is not a
// caller's context: if making the connection takes longer than its first caller waits, the
// connection is there for the next one.
//
// The dial is made here and not by go-redis, because go-redis prints every dial that fails, and
// does so on a goroutine that outlives its client.
func (n *Node) connect(ctx context.Context) (*wire, error) {
	era := n.gate.era.Load()
	conn, err := n.reachOut(ctx)
	if err != nil {
		return nil, err
	}
	patience := n.gate.pace.patience()
	ctx, cancel := context.WithTimeout(ctx, max(handshakeTimeout, 4*patience))
	defer cancel()
	w := newWire(n, conn, era)
	w.credentials = n.feed.Version()
	watch := context.AfterFunc(ctx, w.hangUp)
	err = w.learnTime(ctx)
	if !watch() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		if fault.IsTimeout(err) {
			n.gate.pace.raise(patience)
		}
		w.end()
		return nil, err
	}
	return w, nil
}

// reachOut dials, for no longer than the dial timeout: others may wait at the gate.
func (n *Node) reachOut(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, n.options.DialTimeout)
	defer cancel()
	return dial.Within(ctx, n.options.Network, n.options.Addr, n.options.Dialer)
}

// newWire returns the wire on conn. Its first use is the handshake.
func newWire(n *Node, conn net.Conn, era int64) *wire {
	w := &wire{node: n, era: era, conn: conn, lates: 1}
	w.clock.epoch = time.Now()
	options := *n.options
	if lasts := options.ConnMaxLifetime; lasts > 0 {
		w.expires = w.clock.epoch.Add(max(leastLife, lasts+jitter(options.ConnMaxLifetimeJitter)))
	}
	options.ConnMaxIdleTime, options.ConnMaxLifetime = -1, 0 // the node enforces both
	options.Protocol = 2                                     // with RESP2 nothing is pushed to a wire, and go-redis does not look for pushes
	taken := false
	options.Dialer = func(context.Context, string, string) (net.Conn, error) {
		if taken {
			return dial.Stillborn(fault.ErrSpent), nil
		}
		taken = true
		return w.link(conn), nil
	}
	w.rdb = redis.NewClient(&options)
	w.held, w.since = w.rdb.Conn(), w.clock.epoch
	return w
}

// jitter returns a random duration from -d to d.
func jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(2*d) - d
}

// connection returns the wire's connection. If keep has passed, go-redis checks it first.
func (w *wire) connection(now time.Time) *redis.Conn {
	if now.Sub(w.since) >= keep {
		_ = w.held.Close()
		w.held, w.since = w.rdb.Conn(), now
	}
	return w.held
}

func (w *wire) learnTime(ctx context.Context) error {
	t, err := w.held.Time(ctx).Result()
	if err != nil {
		return err
	}
	w.clock.observe(t.UnixMicro(), time.Now())
	return nil
}

// hangUp cuts the connection, even while a request is on it. It may be called from any
// goroutine and at any time: a wire is one connection, and is not used again.
func (w *wire) hangUp() { dial.Drop(w.conn) }

// end closes the wire. Only its user may call it.
func (w *wire) end() {
	dial.Drop(w.conn)
	_ = w.held.Close()
	_ = w.rdb.Close()
}
