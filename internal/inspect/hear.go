// Messages: what the library publishes about a name wakes a Watch of that name, and counts the releases.

package inspect

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/conn/dial"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// Family is one of the ways in which releases of a name are announced.
type Family int

// The families.
const (
	OfLocks   Family = iota // of a Mutex, a FairMutex, or the lead of an election
	OfRW                    // of an RWMutex: by a writer, or by the last reader
	OfPermits               // of a semaphore of either kind
	Families
)

// Counts has a number for each family.
type Counts [Families]int

// Ear hears what is published about one name.
type Ear struct {
	Wake     chan struct{} // holds a signal after each message; nil: nothing is heard
	releases [Families]atomic.Int64
	stop     func()
}

// Deaf returns an Ear that hears nothing.
func Deaf() *Ear { return &Ear{stop: func() {}} }

// Take returns how many releases were announced since the last Take.
func (e *Ear) Take() (n Counts) {
	for f := range n {
		n[f] = int(e.releases[f].Swap(0))
	}
	return n
}

// Stop closes the Ear, and waits for its goroutine.
func (e *Ear) Stop() { e.stop() }

// Listen returns an Ear at that server for the name, as it is in Redis in that Space. It must be stopped. It subscribes by
// PSUBSCRIBE: a plain subscription would count as a waiter that is no Client of Holdfast, and a release would then do more
// for it.
func Listen(ctx context.Context, m *conn.Manager, space keys.Space, server, name string) *Ear {
	at, err := channelsOf(space, name)
	if err != nil {
		return Deaf() // it can be no name of Holdfast's
	}
	e := &Ear{Wake: make(chan struct{}, 1)}
	rdb := m.DialAtOnce(server)
	tether := newTether(rdb)
	defer context.AfterFunc(ctx, tether.drop)() // otherwise it would wait for a greeting, or a confirmation
	sub := rdb.PSubscribe(ctx, at.patterns()...)
	e.begin(ctx, sub, at)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for message := range sub.Channel() { // closed by Close
			e.hear(at, message)
		}
	}()
	e.stop = func() {
		tether.cut()
		_ = sub.Close()
		_ = rdb.Close()
		<-done
	}
	return e
}

// confirmation is how long Redis has to confirm a pattern before the look goes on.
const confirmation = time.Second

// begin waits until Redis has confirmed each pattern: a release before that is not heard, and the look that comes next would
// not find it either. After an error, or where Redis does not answer, go-redis subscribes again in the background.
func (e *Ear) begin(ctx context.Context, sub *redis.PubSub, at channels) {
	for left := len(at.patterns()); left > 0; {
		message, err := sub.ReceiveTimeout(ctx, confirmation)
		switch m := message.(type) {
		case *redis.Subscription:
			left--
		case *redis.Message:
			e.hear(at, m)
		}
		if err != nil {
			return
		}
	}
}

// hear counts a release that a message announces, and brings the next look forward.
func (e *Ear) hear(at channels, message *redis.Message) {
	if f, released := at.released(message.Channel, message.Payload); released {
		e.releases[f].Add(1)
	}
	select {
	case e.Wake <- struct{}{}:
	default:
	}
}

// tether ends the one connection of a subscription, and the dial for it, which go-redis does not bound. Without that,
// go-redis's Close waits for a dial or a greeting under way: for seconds, or for ever, if the server does not answer.
type tether struct {
	life  context.Context
	end   context.CancelFunc
	limit time.Duration // of a dial

	mu   sync.Mutex
	conn net.Conn // the last one; nil: none
}

func newTether(rdb *redis.Client) *tether {
	t := &tether{limit: rdb.Options().DialTimeout}
	t.life, t.end = context.WithCancel(context.Background())
	rdb.AddHook(t)
	return t
}

func (t *tether) cut() {
	t.end()
	t.drop()
}

func (t *tether) drop() {
	t.mu.Lock()
	conn := t.conn
	t.mu.Unlock()
	dial.Drop(conn)
}

// DialHook implements redis.Hook.
func (t *tether) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, t.limit)
		defer cancel()
		defer context.AfterFunc(t.life, cancel)()
		conn, err := next(ctx, network, addr)
		t.mu.Lock()
		t.conn = conn
		t.mu.Unlock()
		if t.life.Err() != nil || ctx.Err() != nil {
			dial.Drop(conn) // cut, or drop, may have come before it was there
		}
		return conn, err
	}
}

// ProcessHook implements redis.Hook.
func (t *tether) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (t *tether) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// channels are those on which something is said about a name, whatever its kind; "" where the name can be of no such
// kind.
type channels struct {
	lock, changes, grants, rw, permits, latch, barrier, slots, once string
}

func channelsOf(space keys.Space, name string) (channels, error) {
	at, err := space.ForLeader(name)
	if err != nil {
		return channels{}, err
	}
	all := channels{lock: at.Channel, changes: at.Changes, grants: at.Grant + ":"}
	if at, err := space.ForRW(name); err == nil {
		all.rw = at.Channel
	}
	if at, err := space.ForSemaphore(name); err == nil {
		all.permits = at.Channel
	}
	if at, err := space.ForLatch(name); err == nil {
		all.latch = at.Channel
	}
	if at, err := space.ForBarrier(name); err == nil {
		all.barrier = at.Channel
	}
	if at, err := space.ForSlots(name); err == nil {
		all.slots = at.Channel
	}
	all.once = strings.Replace(space.OnceRecordAt(name), "holdfast_once:", "holdfast_once_channel:", 1)
	return all, nil
}

// patterns returns what to subscribe to.
func (c channels) patterns() (patterns []string) {
	for _, channel := range []string{c.lock, c.changes, c.rw, c.permits, c.latch, c.barrier, c.slots, c.once} {
		if channel != "" {
			patterns = append(patterns, Literal(channel))
		}
	}
	return append(patterns, Literal(c.grants)+"*")
}

// released reports whether a message says that something was released. docs/keyspace.md has the messages.
func (c channels) released(channel, message string) (Family, bool) {
	switch {
	case channel == c.lock:
		return OfLocks, message == "0"
	case strings.HasPrefix(channel, c.grants):
		return OfLocks, strings.Count(message, " ") == 2 // it was handed over
	case channel == c.rw:
		return OfRW, message == "0"
	}
	return OfPermits, channel == c.permits
}
