// A Manager: what runs the scripts on the Redis behind one go-redis client.

package conn

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn/call"
	"github.com/holdfast-go/holdfast/internal/conn/fault"
	"github.com/holdfast-go/holdfast/internal/conn/route"
	"github.com/holdfast-go/holdfast/internal/conn/server"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// Manager runs scripts on the Redis behind one go-redis client.
type Manager struct {
	servers *route.Servers
	events  *server.Events
	log     *slog.Logger
	sweeper sweeper
	outage  outage
	quiet   atomic.Bool // a server refuses scripts that publish: see hush.go

	closing context.Context // ends at Interrupt, and ends all calls except those marked Cleanup
	close   context.CancelCauseFunc
	closed  context.Context // ends at Close
	shut    context.CancelCauseFunc
}

// New returns the Manager for the Redis behind rdb. It does no I/O. The error matches
// errs.BadArgument if rdb is nil or of a type that cannot be served.
func New(rdb redis.UniversalClient, log *slog.Logger, events server.Events) (*Manager, error) {
	servers, err := route.New(rdb, log, &events)
	if err != nil {
		return nil, err
	}
	m := &Manager{servers: servers, events: &events, log: log}
	m.sweeper.sweep = servers.Sweep
	m.closing, m.close = context.WithCancelCause(context.Background())
	m.closed, m.shut = context.WithCancelCause(context.Background())
	return m, nil
}

// Interrupt ends every call with errs.Closed, except those marked Cleanup, which go on until
// Close.
func (m *Manager) Interrupt() {
	m.close(errs.Closed)
	m.servers.Interrupt()
}

// Close ends every call with errs.Closed and closes all connections.
func (m *Manager) Close() {
	m.close(errs.Closed)
	m.shut(errs.Closed)
	m.sweeper.stop()
	m.servers.Close()
}

// Needs returns how long two requests, one sent after the other, may take to be answered; 0 unless a
// server is known to be slow.
func (m *Manager) Needs() time.Duration { return m.servers.Needs() }

// KnownNode is Node without I/O; it returns "" if Node would do I/O.
func (m *Manager) KnownNode(key string) string {
	if n := m.servers.Known(key); n != nil {
		return n.Addr
	}
	return ""
}

// Node returns the address of the server that has key now, for RunBatch.
func (m *Manager) Node(ctx context.Context, key string) (string, error) {
	n, err := m.servers.Node(ctx, key)
	if err != nil {
		return "", err
	}
	return n.Addr, nil
}

// KnownPublishCommand is PublishCommand without I/O; it returns "" if PublishCommand would do
// I/O.
func (m *Manager) KnownPublishCommand() string {
	if !m.servers.Probed() {
		return ""
	}
	command, _ := m.PublishCommand(context.Background())
	return command
}

// PublishCommand returns the command that publishes to a channel's subscribers: SPUBLISH in a
// cluster whose servers have it, PUBLISH otherwise. It does I/O only in a cluster, and only
// until the cluster has answered once: until then it asks again, as Run does, as long as ctx
// lasts.
func (m *Manager) PublishCommand(ctx context.Context) (string, error) {
	sharded, err := m.servers.Sharded(ctx)
	if err != nil {
		sharded, err = m.askAgain(ctx, err)
	}
	switch {
	case err != nil:
		return "", err
	case sharded:
		return "SPUBLISH", nil
	default:
		return "PUBLISH", nil
	}
}

// askAgain asks a cluster whether its channels are sharded until it answers. err is the error
// of the first question.
func (m *Manager) askAgain(ctx context.Context, err error) (sharded bool, _ error) {
	t := attempt{m: m, call: new(call.Call)}
	for err != nil {
		if fault.Judge(err) != fault.Again {
			return false, fault.Typed(err, "")
		}
		if ctx.Err() != nil {
			t.silent = true
			return false, t.because(err)
		}
		t.last = err
		t.failures++
		pause(ctx, m.closing, t.backoff())
		sharded, err = m.servers.Sharded(ctx)
	}
	return sharded, nil
}
