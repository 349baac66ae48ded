// Package pubsub is the one subscription service of a Client: any number of
// waiters, any number of channels, one connection (one per master where
// channels are sharded).
//
// # What is promised
//
// A Subscription is a wake-up, not a stream. Its C is signalled
//
//   - once each of its channels is confirmed live after Subscribe, so an owner
//     that checks after that signal has missed nothing (subscribe, then check);
//   - at each message on one of them;
//   - each time one is confirmed again after its connection was lost or
//     its slot has moved, since whatever was published in between is lost.
//
// Signals coalesce: C holds one, whatever number of messages it stands for, and
// of their payloads only the last is kept. Delivery never blocks, so a slow owner
// delays nobody.
//
// What is not promised is that a signal comes. A server may be out of reach for
// long, or may refuse the channel. Every waiter therefore also wakes by a
// bounded poll of its own, and correctness never hangs on a message.
//
// # How it works
//
// A channel is in one of these states:
//
//	unplaced   waits, until its retry time, for a home to be found
//	routing    the router is asking Source.Home
//	queued     placed on a node, SUBSCRIBE not yet written
//	asked      SUBSCRIBE written, answer outstanding
//	live       confirmed
//	gone       nobody has wanted it for the linger: unsubscribed, forgotten
//
// The router, one goroutine, finds homes, retries and ends lingers. A node is
// one connection to one server: a goroutine that writes, and one that reads. It
// lives exactly as long as its connection, and ends with its last channel. When
// it fails, its channels are unplaced again, and the router asks for each home
// anew after a backoff; a new node replaces the old one. go-redis's own
// reconnection is never used: it does not follow a slot that moves, and puts
// several slots into one SSUBSCRIBE.
//
// Redis answers commands in the order it got them, with messages in between. So
// an error reply, which names no channel, belongs to the oldest command without
// an answer. A refused command concerns its own channels alone: they are
// unplaced (or, for want of rights, asked for one by one, and those that are
// refused again are left for long), and the connection stays. Replies that do
// not fit that order end the node.
//
// A node that has heard nothing for Heartbeat sends PING, and so does one that an
// owner suspects. One that hears nothing for PongTimeout while an answer is due is
// dead: so a connection that swallows what is written is noticed after PongTimeout
// where its messages are missed, and after Heartbeat + PongTimeout in any case.
package pubsub

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Source tells a Service where channels live and lends it connections. Its
// methods are called from the Service's own goroutines, several at a time, and
// never under a lock of the Service.
type Source interface {
	// Home names the server on which channel must be subscribed. Where any
	// server will do, it is the same string for every channel. It may do I/O,
	// and returns when ctx ends.
	Home(ctx context.Context, channel string) (string, error)

	// Dial returns a new client for the server that Home named. The Service
	// alone uses it, for one subscription connection, and closes it. Dial does
	// no I/O, and the client keeps no idle connections (MinIdleConns 0). The
	// client's WriteTimeout must not be negative.
	Dial(home string) (*redis.Client, error)

	// Sharded reports whether channels are subscribed with SSUBSCRIBE. It may
	// do I/O the first time, and returns when ctx ends.
	Sharded(ctx context.Context) (bool, error)

	// Moved says that a subscription has failed on that server, so what the
	// source knows of the topology may be stale. It is called before Home is
	// asked again for the channels concerned. It does not block.
	Moved(home string)
}

// ForOthers is a message that is not for Clients of Holdfast: it wakes nobody here.
const ForOthers = "00"

// Config tunes a Service. The zero value of a field stands for its default.
type Config struct {
	// Heartbeat is how long a connection may be quiet before it is sent a PING.
	// 15 s by default.
	Heartbeat time.Duration
	// PongTimeout is how long a connection may be quiet while an answer is due,
	// and the limit of each write. 1 s by default.
	PongTimeout time.Duration
	// ConnectTimeout limits dialling and handshake together, and each round of
	// questions to the Source. 5 s by default.
	ConnectTimeout time.Duration
	// Linger is how long a channel stays subscribed after its last Subscription
	// was closed. 5 s by default; none if negative.
	Linger time.Duration
	// MinBackoff and MaxBackoff bound the delay before a channel is subscribed
	// again after a failure. It doubles with each failure in a row, and up to
	// half of it is taken off at random. 20 ms and 1 s by default.
	MinBackoff, MaxBackoff time.Duration
	// DeniedBackoff is the delay before a channel is tried again that the
	// server's ACL has refused. 30 s by default.
	DeniedBackoff time.Duration
	// Logger is told of lost connections and refused channels. None by default.
	Logger *slog.Logger
	// Reconnected, if not nil, is called each time that a connection stands in
	// for a lost one and has confirmed the first of its channels. It must not
	// block: messages wait behind it.
	Reconnected func()
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	set(&c.Heartbeat, 15*time.Second)
	set(&c.PongTimeout, time.Second)
	set(&c.ConnectTimeout, 5*time.Second)
	set(&c.MinBackoff, 20*time.Millisecond)
	set(&c.MaxBackoff, time.Second)
	set(&c.DeniedBackoff, 30*time.Second)
	if c.Linger == 0 {
		c.Linger = 5 * time.Second
	}
	c.Linger = max(c.Linger, 0)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Service multiplexes the subscriptions of one Client. It is safe for
// concurrent use.
type Service struct {
	src Source
	cfg Config

	ctx     context.Context // ends at Close
	cancel  context.CancelFunc
	running sync.WaitGroup // the router and the nodes
	wake    chan struct{}  // tells the router that there is work; capacity 1

	// mu guards what follows and all fields of channel, node and Subscription
	// that change. It is never held across I/O or a call to foreign code.
	mu       sync.Mutex
	started  bool
	closed   bool
	channels map[string]*channel
	nodes    map[string]*node // by home: where new channels are placed
	alarms   alarms
	stale    map[string]struct{} // homes that Source.Moved is to be told of
	trouble  throttle            // of the log: failures
	denials  throttle            // of the log: refused channels
}

// New returns a Service. It does no I/O and starts no goroutine before the
// first Subscribe.
func New(src Source, cfg Config) *Service {
	s := &Service{
		src:      src,
		cfg:      cfg.withDefaults(),
		wake:     make(chan struct{}, 1),
		channels: make(map[string]*channel),
		nodes:    make(map[string]*node),
		stale:    make(map[string]struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Subscribe returns a new Subscription of the channels, to be closed by its
// owner. It neither blocks nor does I/O. All Subscriptions of a channel share
// one subscription in Redis; if that is live, the new one is signalled at once.
// After Close it returns a Subscription that is never signalled.
func (s *Service) Subscribe(channels ...string) *Subscription {
	sub := &Subscription{service: s, signal: make(chan struct{}, 1)}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return sub
	}
	if !s.started {
		s.started = true
		s.running.Go(s.route)
	}
	for _, name := range channels {
		s.channel(name).add(sub)
	}
	return sub
}

// Close ends all connections and goroutines of the Service and returns when
// they have ended, which does not depend on any server. No Subscription is
// signalled after that. The error is always nil. Close may be called again and
// concurrently: each call waits.
func (s *Service) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()

	s.cancel()
	s.running.Wait()
	return nil
}

// poke leaves a wake-up in c, which has a capacity of 1, unless there is one.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
