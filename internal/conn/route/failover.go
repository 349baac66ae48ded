// Behind Sentinel: another server may become the master while every connection to the former
// master stays up.

package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn/dial"
	"github.com/holdfast-go/holdfast/internal/conn/server"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// sentinelAddr is the address that go-redis gives a client whose dialer asks the Sentinels.
const sentinelAddr = "FailoverClient"

const (
	// askEvery is how often the Sentinels are asked for the master while the node is in use.
	// Only after some 10 s do they demote a former master that can still be reached; the grants
	// that it makes until then are lost.
	askEvery = time.Second
	// askPatience is how long after a question went out a call waits for its answer, if the
	// last answer is old.
	askPatience = 100 * time.Millisecond
)

// failover is single behind Sentinel. It asks the Sentinels which server is the master, and
// drops the connections when that is another server than before.
type failover struct {
	single
	network string      // on which the user's dialer reaches a server
	dialer  dial.Dialer // the user's dialer, which asks the Sentinels for the master
	events  *server.Events
	ctx     context.Context // ends at close
	cancel  context.CancelFunc
	asking  sync.WaitGroup

	mu       sync.Mutex // guards what follows
	asked    time.Time  // when the last question went out
	answered time.Time
	question chan struct{} // closed when the question under way has ended; nil if none is
	master   string        // the Sentinels' last answer; "" before the first
	closed   bool
}

func newFailover(o redis.Options, fs *dial.Feeds, events *server.Events) *failover {
	options := server.Options(o, fs)
	f := &failover{network: options.Network, dialer: options.Dialer, events: events}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	options.Dialer = f.dial
	f.only = server.New(options.Addr, options, fs.Of(o.StreamingCredentialsProvider), events)
	return f
}

// dial dials the master. First it records which server that is, so that every later answer of
// the Sentinels is compared with the one before the first connection.
func (f *failover) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	master, conn, err := f.ask(ctx)
	if err == nil {
		f.told(master)
	}
	if conn != nil {
		return conn, nil
	}
	return f.dialer(ctx, network, addr)
}

// told records the master that the Sentinels name. If that is another one than before, told drops
// the connections. "" says nothing.
func (f *failover) told(master string) {
	f.mu.Lock()
	another := f.master != "" && f.master != master && master != ""
	f.master = cmp.Or(master, f.master)
	f.mu.Unlock()
	if another {
		f.only.Doubt()
		f.events.TellReplaced()
	}
}

// nowhere is a network on which there is no server: go-redis's dialer asks the Sentinels, and
// then finds no socket of that name.
const nowhere = "unix"

// ask asks the Sentinels for the master's address. The user's client has no method for that.
// Its dialer asks the Sentinels and dials the server that they name, on the network that it is
// given. On the network nowhere it connects to nothing, and its error has the address. So ask
// makes no connection to the master, and no TLS handshake. If the user has put a dialer of
// their own below go-redis's, that dialer may ignore the network; then there is a connection
// all the same, and ask returns it.
func (f *failover) ask(ctx context.Context) (master string, conn net.Conn, err error) {
	conn, err = dial.Within(ctx, nowhere, f.only.Addr, f.dialer)
	if err == nil {
		return peer(conn), conn, nil
	}
	var failed *net.OpError
	if errors.As(err, &failed) && failed.Net == nowhere && failed.Addr != nil {
		return failed.Addr.String(), nil, nil
	}
	return "", nil, err
}

// where is ask, without the connection. If the dialer's error does not have the address, where
// makes a connection and returns the address to which that leads.
func (f *failover) where(ctx context.Context) (master string, err error) {
	master, conn, err := f.ask(ctx)
	if err != nil {
		if conn, err = dial.Within(ctx, f.network, f.only.Addr, f.dialer); err != nil {
			return "", err
		}
		master = peer(conn)
	}
	dial.Drop(conn)
	return master, nil
}

// peer returns the address of the connection's other end, "" if the connection does not know it: see net.Conn.
func peer(conn net.Conn) string {
	if at := conn.RemoteAddr(); at != nil {
		return at.String()
	}
	return ""
}

func (f *failover) Node(ctx context.Context, _ string) (*server.Node, error) {
	if question := f.wonder(); question != nil {
		patience := time.NewTimer(askPatience)
		defer patience.Stop()
		select {
		case <-question:
		case <-patience.C:
		case <-ctx.Done():
		}
	}
	return f.only, nil
}

func (f *failover) Known(string) *server.Node {
	if f.wonder() != nil {
		return nil
	}
	return f.only
}

func (f *failover) At(string) *server.Node {
	f.wonder()
	return f.only
}

// Masters returns the address that the Sentinels have given: of more use to a reader than
// go-redis's name for the master.
func (f *failover) Masters(ctx context.Context) ([]string, error) {
	if _, err := f.Node(ctx, ""); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return []string{cmp.Or(f.master, f.only.Addr)}, nil
}

// wonder asks the Sentinels in the background if the last question was long ago. If the last
// answer is so old that a call should wait for a new one, wonder returns a channel that is
// closed when the question under way has ended.
func (f *failover) wonder() (question <-chan struct{}) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.asked) >= askEvery && f.question == nil && !f.closed {
		f.asked, f.question = now, make(chan struct{})
		f.asking.Go(f.follow)
	}
	if now.Sub(f.answered) < 2*askEvery || now.Sub(f.asked) >= askPatience {
		return nil
	}
	return f.question
}

// follow finds out which server is the master now.
func (f *failover) follow() {
	ctx, cancel := context.WithTimeout(f.ctx, server.DialTimeout)
	defer cancel()
	master, err := f.where(ctx)
	if err == nil {
		f.told(master)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		f.answered = time.Now()
	}
	close(f.question)
	f.question = nil
}

func (f *failover) Forgets() bool { return true }

func (f *failover) Close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.cancel()
	f.asking.Wait()
	f.single.Close()
}

// led returns the options for the one master that the ClusterSlots of a cluster client names, as in
// a client of redis.NewFailoverClusterClient, whose ClusterSlots asks the Sentinels. They are the
// options that go-redis makes for a server of a cluster, with a dialer that connects to that
// master.
func led(o redis.ClusterOptions) redis.Options {
	slots := o.ClusterSlots
	o.ClusterSlots = func(context.Context) ([]redis.ClusterSlot, error) {
		return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: sentinelAddr}}}}, nil
	}
	o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false
	o.MinIdleConns, o.PipelinePoolSize, o.AutoPipelineOptions = 0, -1, nil
	o.MaintNotificationsConfig = server.NoMaintenance()
	var leading redis.Options
	users := o.NewClient
	o.NewClient = func(options *redis.Options) *redis.Client {
		made := users(options)
		if made == nil {
			made = redis.NewClient(options)
		}
		leading = *made.Options()
		return made
	}
	c := redis.NewClusterClient(&o)
	defer func() { _ = c.Close() }()
	_, _ = c.MasterForKey(context.Background(), "") // makes go-redis create the client, and connects to nothing

	by := leading.Dialer
	leading.Addr = sentinelAddr
	leading.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
		all, err := slots(ctx)
		if err != nil {
			return nil, err
		}
		master, err := onlyMaster(all)
		if err != nil {
			return nil, err
		}
		return by(ctx, network, master)
	}
	return leading
}

// onlyMaster returns the address of the one master that has all the slots.
func onlyMaster(slots []redis.ClusterSlot) (addr string, err error) {
	for _, some := range slots {
		if len(some.Nodes) == 0 || addr != "" && some.Nodes[0].Addr != addr {
			return "", fmt.Errorf("ClusterSlots names several masters, or none: only one for all slots can be served: %w", errs.BadArgument)
		}
		addr = some.Nodes[0].Addr
	}
	if addr == "" {
		return "", errors.New("ClusterSlots names no master")
	}
	return addr, nil
}
