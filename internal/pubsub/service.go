// Package pubsub is the one subscription service of a Client: any number of waiters and
// channels on one connection (one per master where channels are sharded).
//
// # What is promised
//
// A Subscription is a wake-up, not a stream. Its C is signalled
//
//   - once each of its channels is confirmed live after Subscribe, so an owner that checks
//     after that signal has missed nothing (subscribe, then check);
//   - at each message on one of them;
//   - each time a channel is confirmed again after its connection was lost or its slot has
//     moved, since messages published in between are lost.
//
// Signals coalesce: C holds one signal, however many messages it stands for, and only the last
// payload is kept. Delivery never blocks, so a slow owner delays no other.
//
// The service does not promise that a signal comes. A server may be out of reach for long, or
// may refuse the channel. So every waiter also polls at bounded intervals, and correctness
// never depends on a message.
//
// # How it works
//
// A channel is in one of these states:
//
//	unplaced   waits, until its retry time, for the router to find its home
//	routing    the router is asking Source.Home
//	queued     placed on a node, SUBSCRIBE not yet written
//	asked      SUBSCRIBE written, not yet answered
//	live       confirmed
//	gone       without listeners for the linger: unsubscribed, forgotten
//
// The router, one goroutine, finds homes, retries and ends lingers. A node is one connection to
// one server, with one goroutine that writes and one that reads. It lives exactly as long as
// its connection, and ends with its last channel. When a node fails, its channels are unplaced
// again, and the router asks for each home anew after a backoff; a new node replaces the old
// one. go-redis's own reconnection is never used: it does not follow a slot that moves, and
// puts several slots into one SSUBSCRIBE.
//
// Redis answers commands in the order in which it got them, with messages in between. So an
// error reply, which names no channel, belongs to the oldest unanswered command. A refused
// command concerns its own channels alone, and the connection stays. These channels are
// unplaced. If the user lacks the rights, or the server the command, they are instead subscribed
// to one by one, and those that are refused again wait for DeniedBackoff. Replies that do not fit
// that order end the node.
//
// A node that has heard nothing for Heartbeat sends a PING, and so does a node that an owner
// suspects. A node that hears nothing for PongTimeout while an answer is due is dead. So a
// connection that swallows what is written is noticed after PongTimeout if its messages are
// missed, and after Heartbeat + PongTimeout in any case.
package pubsub

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Source finds for a Service the server of each channel, and gives it connections. The Service's
// own goroutines call its methods, several at a time, and never under a lock of the Service.
type Source interface {
	// Home returns the server on which channel must be subscribed to. Where any server will do,
	// it returns the same string for every channel. It may do I/O, and returns when ctx ends.
	Home(ctx context.Context, channel string) (string, error)

	// Dial returns a new client for a server that Home returned. Only the Service uses it, for
	// one subscription connection, and closes it. Dial does no I/O, and the client keeps no
	// idle connections (MinIdleConns 0). The client's WriteTimeout must not be negative.
	Dial(home string) (*redis.Client, error)

	// Sharded reports whether channels are subscribed to with SSUBSCRIBE. It may do I/O the
	// first time, and returns when ctx ends.
	Sharded(ctx context.Context) (bool, error)

	// Moved notifies the source that a subscription on that server has failed, so its knowledge of
	// the topology may be stale. It is called before Home is asked again for the channels
	// concerned. It does not block.
	Moved(home string)
}

// ForOthers is a message that is not for Clients of Holdfast: it wakes none of their waiters.
const ForOthers = "00"

// Config configures a Service. The zero value of a field means its default.
type Config struct {
	// Heartbeat is how long a connection may be quiet before it is sent a PING. The default is
	// 15 s.
	Heartbeat time.Duration
	// PongTimeout is how long a connection may be quiet while an answer is due, and the limit
	// of each write. The default is 1 s.
	PongTimeout time.Duration
	// ConnectTimeout limits dialling and handshake together, and each round of questions to the
	// Source. The default is 5 s.
	ConnectTimeout time.Duration
	// Linger is how long a channel stays subscribed after its last Subscription was closed. The
	// default is 5 s; a negative value means not at all.
	Linger time.Duration
	// MinBackoff and MaxBackoff bound the delay before a channel is subscribed to again after a
	// failure. The delay doubles with each failure in a row, and up to half of it is taken off
	// at random. The defaults are 20 ms and 1 s.
	MinBackoff, MaxBackoff time.Duration
	// DeniedBackoff is the delay before another try for a channel that the server has refused for
	// want of a right, or of the command. The default is 30 s.
	DeniedBackoff time.Duration
	// LacksCommand reports whether a server's refusal says that it does not have the command, for
	// example after a rename. The default is that none says so.
	LacksCommand func(error) bool
	// Logger receives lost connections and refused channels. The default is off.
	Logger *slog.Logger
	// Reconnected, if not nil, is called each time a connection that replaces a lost one has
	// confirmed the first of its channels. It must not block: messages wait behind it.
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
	if c.LacksCommand == nil {
		c.LacksCommand = func(error) bool { return false }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Service multiplexes the subscriptions of one Client. It is safe for concurrent use.
type Service struct {
	src Source
	cfg Config

	ctx     context.Context // ends at Close
	cancel  context.CancelFunc
	running sync.WaitGroup // the router and the nodes
	wake    chan struct{}  // tells the router that there is work; capacity 1

	// mu guards what follows, and all fields of channel, node and Subscription that change. It
	// is never held across I/O or a call of foreign code.
	mu       sync.Mutex
	started  bool
	closed   bool
	channels map[string]*channel
	nodes    map[string]*node // by home: where new channels are placed
	alarms   alarms
	stale    map[string]struct{} // homes for which Source.Moved must be called
	trouble  throttle            // limits the log of failures
	denials  throttle            // limits the log of refused channels
}

// New returns a Service. It does no I/O and starts no goroutine before the first Subscribe.
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

// Subscribe returns a new Subscription of the channels; its owner must close it. Subscribe
// neither blocks nor does I/O. All Subscriptions of a channel share one subscription in Redis;
// if that is live, the new one is signalled at once. After Close, Subscribe returns a
// Subscription that is never signalled.
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

// Reconnect replaces all connections: messages may be published at another server now.
func (s *Service) Reconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.nodes {
		n.replaced = true
		poke(n.wake)
	}
}

// Close ends all connections and goroutines of the Service, and returns when they have ended,
// which does not depend on any server. No Subscription is signalled after that. Close may be called
// again and concurrently: each call waits.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()

	s.cancel()
	s.running.Wait()
}

// poke leaves a wake-up in c, which has a capacity of 1, unless there is one already.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
