// Behind Sentinel: another server may be the master while every connection to the
// former one goes on.

package conn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// sentinelAddr is the address that go-redis gives a client whose dialer asks the
// Sentinels.
const sentinelAddr = "FailoverClient"

const (
	// askEvery is how often the Sentinels are asked for the master while the lane
	// is in use. A former master that can still be reached is told by them, after
	// some 10 s, that it is none; until then it grants what will be thrown away.
	askEvery = time.Second
	// askPatience is how long a call waits for the answer, if the last one is old.
	askPatience = 100 * time.Millisecond
)

// failover is single behind Sentinel: it asks the Sentinels which server is the master,
// and drops the connections when that is another one than before.
type failover struct {
	single
	dialer dialer          // the user's, which asks the Sentinels where to
	ctx    context.Context // ends at close
	cancel context.CancelFunc
	asking sync.WaitGroup

	mu       sync.Mutex // guards what follows
	asked    time.Time  // when the last question went out
	answered time.Time
	question chan struct{} // closed when the question under way has ended; nil if none is
	master   string        // as the Sentinels have told it last; "" before
	closed   bool
}

func newFailover(options *redis.Options) *failover {
	f := &failover{dialer: options.Dialer}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	options.Dialer = f.dial
	f.only = newLane(options.Addr, options)
	return f
}

// dial dials the master, and takes in first which that is: whatever the Sentinels tell
// later is compared with what they told before the first connection.
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

// told drops the connections if the Sentinels name another master than before.
func (f *failover) told(master string) {
	f.mu.Lock()
	another := f.master != "" && f.master != master
	f.master = master
	f.mu.Unlock()
	if another {
		f.only.doubt()
	}
}

// nowhere is a network on which no server is: go-redis's dialer asks the Sentinels, and
// then finds no socket of that name.
const nowhere = "unix"

// ask asks the Sentinels for the master's address. The user's client has no method for
// that. Its dialer asks them and dials what they name, on the network that it is given; on
// one where nothing is it connects to nothing, and its error has the address. So no
// connection to the master is made, and no TLS handshake. A dialer of the user's below
// go-redis's need not look at the network: then there is a connection all the same.
func (f *failover) ask(ctx context.Context) (master string, conn net.Conn, err error) {
	conn, err = within(ctx, nowhere, f.only.addr, f.dialer)
	if err == nil {
		return conn.RemoteAddr().String(), conn, nil
	}
	var failed *net.OpError
	if errors.As(err, &failed) && failed.Net == nowhere && failed.Addr != nil {
		return failed.Addr.String(), nil, nil
	}
	return "", nil, err
}

// where is ask. If the dialer does not tell, it returns what a connection leads to.
func (f *failover) where(ctx context.Context) (master string, err error) {
	master, conn, err := f.ask(ctx)
	if err != nil {
		if conn, err = within(ctx, f.only.options.Network, f.only.addr, f.dialer); err != nil {
			return "", err
		}
		master = conn.RemoteAddr().String()
	}
	drop(conn)
	return master, nil
}

func (f *failover) lane(ctx context.Context, _ string) (*lane, error) {
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

func (f *failover) known(string) *lane {
	if f.wonder() != nil {
		return nil
	}
	return f.only
}

func (f *failover) at(string) *lane {
	f.wonder()
	return f.only
}

// masters returns the address that the Sentinels have told, which says more to whoever reads
// it than what go-redis calls the master.
func (f *failover) masters(ctx context.Context) ([]string, error) {
	if _, err := f.lane(ctx, ""); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return []string{cmp.Or(f.master, f.only.addr)}, nil
}

// wonder asks, in the background, if the last question was long ago. It returns
// what to wait for if the last answer is so old that a call should.
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
	ctx, cancel := context.WithTimeout(f.ctx, dialTimeout)
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

func (f *failover) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.cancel()
	f.asking.Wait()
	f.single.close()
}

// led returns the options for the one master to which the ClusterSlots of a cluster client
// lead: redis.NewFailoverClusterClient asks the Sentinels by it. They are those of a node
// as go-redis makes it, with a dialer that goes where ClusterSlots says.
func led(o redis.ClusterOptions) redis.Options {
	slots := o.ClusterSlots
	o.ClusterSlots = func(context.Context) ([]redis.ClusterSlot, error) {
		return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: sentinelAddr}}}}, nil
	}
	o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false
	o.MinIdleConns, o.PipelinePoolSize, o.AutoPipelineOptions = 0, -1, nil
	var node redis.Options
	users := o.NewClient
	o.NewClient = func(options *redis.Options) *redis.Client {
		made := users(options)
		if made == nil {
			made = redis.NewClient(options)
		}
		node = *made.Options()
		return made
	}
	c := redis.NewClusterClient(&o)
	defer func() { _ = c.Close() }()
	_, _ = c.MasterForKey(context.Background(), "") // has the node made, and connects to nothing

	dial := node.Dialer
	node.Addr = sentinelAddr
	node.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
		all, err := slots(ctx)
		if err != nil {
			return nil, err
		}
		master, err := onlyMaster(all)
		if err != nil {
			return nil, err
		}
		return dial(ctx, network, master)
	}
	return node
}

// onlyMaster returns the address of the master that has all the slots.
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
