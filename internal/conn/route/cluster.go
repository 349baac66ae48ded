// The topology of a Redis Cluster: which master has which slot.

package route

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn/dial"
	"github.com/holdfast-go/holdfast/internal/conn/fault"
	"github.com/holdfast-go/holdfast/internal/conn/server"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// cluster routes by the slot table of a go-redis cluster client of its own. That client sends
// no scripts: it only loads and keeps the table. Requests go out on nodes, one for each master.
//
// A MOVED is believed at once, for its slot, until the reloaded table has it.
type cluster struct {
	client *redis.ClusterClient

	feeds  *dial.Feeds
	events *server.Events
	make   func(*redis.Options) *redis.Client // the user's NewClient, for the client of one server; nil if there is none

	mu       sync.Mutex // guards what follows
	byAddr   map[string]*member
	overlay  map[int]relocation
	options  map[string]nodeOptions // of the servers that the table has named
	template *redis.Options         // a server's options as go-redis makes them, for servers that the table does not name yet
	closing  bool
	closed   bool

	loading *loading // the first load of the table, while it is under way

	interrupted chan struct{} // closed by interrupt

	loaded atomic.Bool // true once there is a table
	support
	asking sync.WaitGroup
}

// support is which pub/sub the servers have.
type support struct {
	pubsub   atomic.Int32  // unprobed, classicPubSub or shardedPubSub
	answered chan struct{} // closed when it is known
}

// relocation is the new place of a slot, as a MOVED gave it.
type relocation struct {
	addr string
	told time.Time
}

// overlayLife is how long a MOVED outweighs the table: longer than a reload of the table takes.
const overlayLife = 2 * time.Second

func newCluster(o redis.ClusterOptions, fs *dial.Feeds, events *server.Events) *cluster {
	c := &cluster{
		feeds:       fs,
		events:      events,
		make:        o.NewClient,
		options:     make(map[string]nodeOptions),
		byAddr:      make(map[string]*member),
		overlay:     make(map[int]relocation),
		interrupted: make(chan struct{}),
		support:     support{answered: make(chan struct{})},
	}
	o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false
	o.MaxRetries, o.MaxRedirects = -1, 1
	o.MinIdleConns = 0
	o.DisableIdentity = true
	o.MaintNotificationsConfig = server.NoMaintenance()
	o.AutoPipelineOptions = nil
	o.NewClient = c.nodeClient
	c.client = redis.NewClusterClient(&o)
	return c
}

func (c *cluster) Node(ctx context.Context, key string) (*server.Node, error) {
	if addr, ok := c.relocated(keys.Slot(key)); ok {
		return c.At(addr), nil
	}
	if err := c.load(ctx); err != nil {
		return nil, err
	}
	master, err := c.client.MasterForKey(ctx, key)
	if err != nil {
		return nil, err
	}
	n := c.At(master.Options().Addr)
	c.mu.Lock()
	if m := c.byAddr[n.Addr]; m != nil && m.Node == n {
		m.key, m.at = key, time.Now()
	}
	c.mu.Unlock()
	return n, nil
}

// Known is Node without I/O, once there is a table to look the key up in; before that it
// returns nil.
func (c *cluster) Known(key string) *server.Node {
	if !c.loaded.Load() {
		return nil
	}
	n, err := c.Node(context.Background(), key)
	if err != nil {
		return nil // the caller then calls Node, which returns the error
	}
	return n
}

// load waits until there is a table. Callers wait for the I/O of the first load only, all of
// them for the same load; later loads go on in the background.
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
		return fault.Unsent{Err: errs.Closed}
	}
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	case <-c.interrupted:
		return fault.Unsent{Err: errs.Closed}
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

// leaving runs f, which does I/O with go-redis's own timeouts. When callers are interrupted,
// leaving leaves f behind, because Close would otherwise have to wait for it.
func (c *cluster) leaving(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-c.interrupted:
		return fault.Unsent{Err: errs.Closed}
	}
}

// relocated returns the address to which a recent MOVED sent the slot.
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

func (c *cluster) Moved(key, addr string) {
	c.mu.Lock()
	c.overlay[keys.Slot(key)] = relocation{addr: addr, told: time.Now()}
	c.mu.Unlock()
	c.client.ReloadState(context.Background())
}

func (c *cluster) Masters(ctx context.Context) ([]string, error) {
	var mu sync.Mutex
	var addrs []string
	err := c.client.ForEachMaster(ctx, func(_ context.Context, master *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		addrs = append(addrs, master.Options().Addr)
		return nil
	})
	slices.Sort(addrs)
	return addrs, err
}

func (c *cluster) Forgets() bool { return false }

func (c *cluster) Follows() bool { return true }

// Elsewhere also reloads the table, in the background: a server that cannot be reached may have
// been replaced by now.
func (c *cluster) Elsewhere(n *server.Node, key string) bool {
	c.client.ReloadState(context.Background())
	now := c.Known(key)
	return now != nil && now != n
}

func (c *cluster) Needs() (most time.Duration) {
	for _, m := range c.members() {
		most = max(most, m.Needs())
	}
	return most
}

func (c *cluster) Interrupt() {
	c.mu.Lock()
	first := !c.closing
	c.closing = true
	c.mu.Unlock()
	if first {
		close(c.interrupted)
	}
	for _, m := range c.members() {
		m.Interrupt()
	}
}

func (c *cluster) Close() {
	c.Interrupt()
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	for _, m := range c.members() {
		m.Close()
	}
	_ = c.client.Close()
	c.asking.Wait()
}
