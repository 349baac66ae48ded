// The topology of a Redis Cluster: which master has which slot.

package conn

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// cluster routes by the slot table of a go-redis cluster client of its own,
// which carries no scripts: it only loads and keeps the table. Requests go out
// on lanes, one per master.
//
// A MOVED is believed at once, for that slot, until the reloaded table has it.
type cluster struct {
	client *redis.ClusterClient

	mu       sync.Mutex // guards what follows
	byAddr   map[string]*lane
	overlay  map[int]relocation
	template *redis.Options // a node's options, for servers that the table does not have yet
	closing  bool
	closed   bool

	loading *loading // the first load of the table, while it is under way

	interrupted chan struct{} // closed by interrupt
	probed      chan struct{} // closed when pubsub is known

	loaded atomic.Bool  // there is a table
	pubsub atomic.Int32 // unprobed, classicPubSub or shardedPubSub
	asking sync.WaitGroup
}

// relocation is what a MOVED said.
type relocation struct {
	addr string
	told time.Time
}

// overlayLife is for how long a MOVED outweighs the table: longer than the
// table takes to be reloaded.
const overlayLife = 2 * time.Second

const (
	unprobed int32 = iota
	classicPubSub
	shardedPubSub
)

func newCluster(o redis.ClusterOptions) *cluster {
	c := &cluster{
		byAddr:      make(map[string]*lane),
		overlay:     make(map[int]relocation),
		interrupted: make(chan struct{}),
		probed:      make(chan struct{}),
	}
	o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false
	o.MaxRetries, o.MaxRedirects = -1, 1
	o.DialerRetries = 1
	o.DialTimeout = shorter(o.DialTimeout, dialTimeout)
	o.ReadTimeout = shorter(o.ReadTimeout, ioTimeout)
	o.WriteTimeout = shorter(o.WriteTimeout, ioTimeout)
	o.ContextTimeoutEnabled = true
	o.MinIdleConns = 0
	o.PipelinePoolSize = -1
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.AutoPipelineOptions = nil
	o.NewClient = c.newNode
	c.client = redis.NewClusterClient(&o)
	return c
}

// newNode is how the table's client makes its nodes. It is where we see their
// options, complete only once go-redis has made a client of them.
func (c *cluster) newNode(o *redis.Options) *redis.Client {
	node := redis.NewClient(o)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.template == nil {
		c.template = wireOptions(*node.Options())
	}
	return node
}

func (c *cluster) lane(ctx context.Context, key string) (*lane, error) {
	if addr, ok := c.relocated(keys.Slot(key)); ok {
		return c.at(addr), nil
	}
	if err := c.load(ctx); err != nil {
		return nil, err
	}
	node, err := c.client.MasterForKey(ctx, key)
	if err != nil {
		return nil, err
	}
	return c.at(node.Options().Addr), nil
}

// known is lane once there is a table: then it is looked up there.
func (c *cluster) known(key string) *lane {
	if !c.loaded.Load() {
		return nil
	}
	l, err := c.lane(context.Background(), key)
	if err != nil {
		return nil // lane says why
	}
	return l
}

// load waits until there is a table. Only the first load does I/O that its
// callers wait for, all for the same; later ones go on in the background.
func (c *cluster) load(ctx context.Context) error {
	if c.loaded.Load() {
		return nil
	}
	c.mu.Lock()
	l := c.loading
	if l == nil && !c.closing {
		l = &loading{done: make(chan struct{})}
		c.loading = l
		c.asking.Go(func() { c.loadTable(l) })
	}
	c.mu.Unlock()
	if l == nil {
		return unsent{errs.Closed}
	}
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	case <-c.interrupted:
		return unsent{errs.Closed}
	}
}

// loading is a first load under way.
type loading struct {
	done chan struct{} // closed when err is set
	err  error
}

func (c *cluster) loadTable(l *loading) {
	l.err = c.leaving(func() error {
		_, err := c.client.MasterForKey(context.Background(), "")
		return err
	})
	if l.err == nil && c.loaded.CompareAndSwap(false, true) {
		c.asking.Go(c.probe)
	}
	c.mu.Lock()
	c.loading = nil
	c.mu.Unlock()
	close(l.done)
}

// leaving runs f, which does I/O by go-redis's own timeouts. When callers are interrupted
// f is left behind, as Close would have to wait for it.
func (c *cluster) leaving(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-c.interrupted:
		return unsent{errs.Closed}
	}
}

// relocated returns where a MOVED has sent the slot lately.
func (c *cluster) relocated(slot int) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	to, ok := c.overlay[slot]
	if ok && time.Since(to.told) > overlayLife {
		delete(c.overlay, slot)
		ok = false
	}
	return to.addr, ok
}

func (c *cluster) at(addr string) *lane {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.byAddr[addr]
	if l == nil {
		options := *c.template
		options.Addr, options.NodeAddress = addr, addr
		l = newLane(addr, &options)
		l.closing, l.closed = c.closing, c.closed
		l.replicated.closing, l.replicated.closed = c.closing, c.closed
		c.byAddr[addr] = l
	}
	return l
}

func (c *cluster) moved(key, addr string) {
	c.mu.Lock()
	c.overlay[keys.Slot(key)] = relocation{addr: addr, told: time.Now()}
	c.mu.Unlock()
	c.client.ReloadState(context.Background())
}

// failed drops what MOVED said of that server and asks for a new table: dial
// errors alone do not make go-redis look again.
func (c *cluster) failed(l *lane) {
	c.mu.Lock()
	for slot, to := range c.overlay {
		if to.addr == l.addr {
			delete(c.overlay, slot)
		}
	}
	c.mu.Unlock()
	c.client.ReloadState(context.Background())
}

func (c *cluster) sharded(ctx context.Context) (bool, error) {
	if c.pubsub.Load() == unprobed {
		if err := c.load(ctx); err != nil { // with the table comes the probe
			return false, err
		}
		select {
		case <-c.probed:
		case <-ctx.Done():
			return false, ctx.Err()
		case <-c.interrupted:
			return false, unsent{errs.Closed}
		}
	}
	return c.pubsub.Load() == shardedPubSub, nil
}

// probe finds out whether the servers have sharded channels: from the master that
// answers first, since one may be frozen.
func (c *cluster) probe() {
	for {
		_ = c.leaving(func() error {
			return c.client.ForEachMaster(context.Background(), func(ctx context.Context, node *redis.Client) error {
				c.learn(node.PubSubShardNumSub(ctx).Err())
				return nil
			})
		})
		select {
		case <-c.probed:
			return
		case <-c.interrupted:
			return
		case <-time.After(maxBackoff):
		}
	}
}

// learn takes in what one master answered to the probe. No right to ask is taken
// for no: then only the wake-up of others is lost.
func (c *cluster) learn(err error) {
	answer := classicPubSub
	if err == nil {
		answer = shardedPubSub
	} else if !isReply(err) || judge(err) != final {
		return
	}
	if c.pubsub.CompareAndSwap(unprobed, answer) {
		close(c.probed)
	}
}

func (c *cluster) masters(ctx context.Context) ([]string, error) {
	var mu sync.Mutex
	var addrs []string
	err := c.client.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		addrs = append(addrs, node.Options().Addr)
		return nil
	})
	slices.Sort(addrs)
	return addrs, err
}

func (c *cluster) follows() bool { return true }

func (c *cluster) interrupt() {
	c.mu.Lock()
	first := !c.closing
	c.closing = true
	c.mu.Unlock()
	if first {
		close(c.interrupted)
	}
	for _, l := range c.lanes() {
		l.interrupt()
	}
}

func (c *cluster) close() {
	c.interrupt()
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	for _, l := range c.lanes() {
		l.close()
	}
	_ = c.client.Close()
	c.asking.Wait()
}

func (c *cluster) lanes() []*lane {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.byAddr))
}
