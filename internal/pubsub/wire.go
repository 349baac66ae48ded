// A wire is one go-redis subscription connection. It lasts no longer than its TCP connection,
// and can be cut from outside.

package pubsub

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	errConnect  = errors.New("not connected in time")
	errNoRedial = errors.New("connection is not replaced in place")
)

// wire is a redis.PubSub with two differences. It never reconnects of its own accord: once it is open,
// it refuses to dial. And when its context ends, its network connection is closed underneath,
// which ends every call at once, whatever the server does; go-redis's Close would first wait
// for the call in progress.
type wire struct {
	ctx    context.Context // ends with the wire
	cancel context.CancelCauseFunc

	client  *redis.Client
	pubsub  *redis.PubSub
	sharded bool
	limit   time.Duration // of each write

	severed chan struct{} // closed when the network connections are

	mu     sync.Mutex
	sealed bool       // it refuses to dial
	conns  []net.Conn // dialled, to be closed by sever
}

// openWire sends a PING, which makes go-redis dial; the reader takes its answer. openWire takes
// over client, even when it fails.
func openWire(ctx context.Context, client *redis.Client, sharded bool, cfg Config) (*wire, error) {
	w := &wire{client: client, sharded: sharded, limit: cfg.PongTimeout, severed: make(chan struct{})}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	context.AfterFunc(w.ctx, w.sever)
	client.AddHook(w)
	w.pubsub = client.Subscribe(w.ctx)

	timer := time.AfterFunc(cfg.ConnectTimeout, func() { w.cancel(errConnect) })
	err := w.pubsub.Ping(w.ctx)
	timer.Stop()
	w.seal()
	if cause := context.Cause(w.ctx); cause != nil {
		err = cause
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *wire) send(v verb, names []string) error {
	ctx, cancel := context.WithTimeout(w.ctx, w.limit)
	defer cancel()
	switch {
	case v == ping:
		return w.pubsub.Ping(ctx)
	case v == subscribe && w.sharded:
		return w.pubsub.SSubscribe(ctx, names...)
	case v == subscribe:
		return w.pubsub.Subscribe(ctx, names...)
	case w.sharded:
		return w.pubsub.SUnsubscribe(ctx, names...)
	default:
		return w.pubsub.Unsubscribe(ctx, names...)
	}
}

// receive returns the next reply or message. It has no timeout, because a timeout amid a reply
// would leave go-redis reading from the middle of it. A caller that finds the wait too long
// closes the wire.
func (w *wire) receive() (any, error) {
	return w.pubsub.Receive(w.ctx)
}

// close ends the wire, and the calls in progress on it.
func (w *wire) close() {
	w.cancel(nil)
	<-w.severed
	_ = w.pubsub.Close()
	_ = w.client.Close()
}

func (w *wire) seal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sealed = true
}

func (w *wire) sever() {
	defer close(w.severed)
	w.mu.Lock()
	w.sealed = true
	conns := w.conns
	w.conns = nil
	w.mu.Unlock()

	for _, conn := range conns {
		// Closing the TLS connection would first write an alert, and wait for a frozen peer.
		if layered, ok := conn.(interface{ NetConn() net.Conn }); ok {
			conn = layered.NetConn()
		}
		_ = conn.Close()
	}
}

// DialHook implements redis.Hook: it records the network connection.
func (w *wire) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		w.mu.Lock()
		sealed := w.sealed
		w.mu.Unlock()
		if sealed {
			return nil, errNoRedial
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(w.ctx, cancel)() // go-redis may have given the dial a context of its own
		conn, err := next(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		sealed = w.sealed
		if !sealed {
			w.conns = append(w.conns, conn)
		}
		w.mu.Unlock()
		if sealed {
			_ = conn.Close()
			return nil, errNoRedial
		}
		return conn, nil
	}
}

// ProcessHook implements redis.Hook.
func (w *wire) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (w *wire) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
