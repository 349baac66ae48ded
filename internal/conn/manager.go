// Package conn is the one path by which every script of Holdfast reaches Redis.
//
// A Manager uses small clients of its own, made from the options of the go-redis client that it
// is given. They have short timeouts, so that a frozen server is noticed. They do not use
// go-redis's retries, which send a script again without the caller's knowledge. And they have
// connections of their own, so that the user's pool never starves Holdfast, nor the reverse.
//
// A call goes this way. Run finds the node of the server that has the key. The node sends the
// call at once on a free wire, or in the next pipeline with the other queued requests; several of
// these may go out as one script, a bundle. The wire stamps it with its not-after, writes it, and
// reads the reply. Run retries what passes by
// itself (a lost connection, LOADING, a failover, a slot on the move) until the caller's
// context ends. That is safe because every script is safe to run twice. Any other error is
// returned at once, with its sentinel.
//
// When the caller's context ends, Run returns at once. A request that was sent may still run,
// up to its not-after and not later: Call.Outstanding says so, and the caller cleans up.
package conn

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// Manager runs scripts on the Redis behind one go-redis client.
type Manager struct {
	topology topology
	address  string
	feeds    *feeds
	events   *Events
	log      *slog.Logger
	requests requests
	sweeper  sweeper
	outage   outage
	quiet    atomic.Bool // a server refuses scripts that publish: see quiet.go

	closing context.Context // ends at Interrupt, and ends all calls except those marked Cleanup
	close   context.CancelCauseFunc
	closed  context.Context // ends at Close
	shut    context.CancelCauseFunc
}

// New returns the Manager for the Redis behind rdb. It does no I/O. The error matches
// errs.BadArgument if rdb is nil or of a type that cannot be served.
func New(rdb redis.UniversalClient, log *slog.Logger, events Events) (*Manager, error) {
	fs := &feeds{log: log}
	t, err := newTopology(rdb, fs, &events)
	if err != nil {
		return nil, err
	}
	m := newManager(t, addressOf(rdb), fs, log)
	m.events = &events
	return m, nil
}

func newManager(t topology, address string, fs *feeds, log *slog.Logger) *Manager {
	m := &Manager{topology: t, address: address, feeds: fs, log: log}
	m.sweeper.sweep = t.sweep
	m.closing, m.close = context.WithCancelCause(context.Background())
	m.closed, m.shut = context.WithCancelCause(context.Background())
	return m
}

// Interrupt ends every call with errs.Closed, except those marked Cleanup, which go on until
// Close.
func (m *Manager) Interrupt() {
	m.close(errs.Closed)
	m.topology.interrupt()
}

// Close ends every call with errs.Closed and closes all connections.
func (m *Manager) Close() {
	m.close(errs.Closed)
	m.shut(errs.Closed)
	m.sweeper.stop()
	m.topology.close()
	m.feeds.close()
}

// KnownNode returns what Node returns, or "" if finding it takes more than a look-up.
func (m *Manager) KnownNode(key string) string {
	if n := m.topology.known(key); n != nil {
		return n.addr
	}
	return ""
}

// Node returns the address of the server that has key now, for RunBatch.
func (m *Manager) Node(ctx context.Context, key string) (string, error) {
	n, err := m.topology.node(ctx, key)
	if err != nil {
		return "", err
	}
	return n.addr, nil
}

// KnownPublishCommand is PublishCommand without I/O; it returns "" if PublishCommand would do
// I/O.
func (m *Manager) KnownPublishCommand() string {
	if !m.topology.probed() {
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
	sharded, err := m.topology.sharded(ctx)
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
	t := attempt{m: m, call: new(Call)}
	for err != nil {
		if judge(err) != again {
			return false, typed(err, nil)
		}
		if ctx.Err() != nil {
			t.silent = true
			return false, t.because(err)
		}
		t.last = err
		t.failures++
		pause(ctx, m.closing, t.backoff())
		sharded, err = m.topology.sharded(ctx)
	}
	return sharded, nil
}
