// The topology of a Redis Cluster: which master has which slot.

package route

import (
	"context"
	"maps"
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

// member is a server that callers were led to.
type member struct {
	*server.Node
	lookup // the last one that led to it
}

// lookup is the finding of a server by a key.
type lookup struct {
	key     string // the key that was looked up
	at      time.Time
	watched bool // the cluster waits for another server to have the key
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

// Known is node without I/O, once there is a table to look the key up in; before that it
// returns nil.
func (c *cluster) Known(key string) *server.Node {
	if !c.loaded.Load() {
		return nil
	}
	n, err := c.Node(context.Background(), key)
	if err != nil {
		return nil // the caller then calls node, which returns the error
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

func (c *cluster) At(addr string) *server.Node {
	c.mu.Lock()
	m := c.byAddr[addr]
	c.mu.Unlock()
	if m != nil {
		return m.Node
	}
	its := c.optionsFor(addr)
	made := server.New(addr, its.options, its.feed, c.events)
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.byAddr[addr]; m != nil {
		return m.Node // another goroutine was faster
	}
	switch {
	case c.closed:
		made.Close() // at once: nothing is on it
	case c.closing:
		made.Interrupt()
	}
	c.byAddr[addr] = &member{Node: made, lookup: lookup{at: time.Now()}}
	return made
}

func (c *cluster) Moved(key, addr string) {
	c.mu.Lock()
	c.overlay[keys.Slot(key)] = relocation{addr: addr, told: time.Now()}
	c.mu.Unlock()
	c.client.ReloadState(context.Background())
}

// Failed forgets every MOVED that named that server, and asks for a new table: dial errors
// alone do not make go-redis reload it.
func (c *cluster) Failed(n *server.Node) {
	c.mu.Lock()
	for slot, to := range c.overlay {
		if to.addr == n.Addr {
			delete(c.overlay, slot)
		}
	}
	if m := c.byAddr[n.Addr]; m != nil && m.Node == n && m.key != "" && !m.watched && !c.closing {
		m.watched = true
		key := m.key
		c.asking.Go(func() { c.watch(m, key) })
	}
	c.mu.Unlock()
	c.client.ReloadState(context.Background())
}

// watch has all keys doubted once another server has key, which the member had when it failed: a
// failover may have forgotten what was written last. If the server itself comes back, its next
// connection does that.
func (c *cluster) watch(m *member, key string) {
	for until := time.Now().Add(retireAfter); c.has(m.Node, key) && m.Failing() && time.Now().Before(until); {
		if c.interruptedWithin(watchEvery) {
			break
		}
	}
	c.mu.Lock()
	m.watched = false
	c.mu.Unlock()
	if !c.has(m.Node, key) {
		c.events.TellDoubt(server.Doubt{All: true})
	}
}

// interruptedWithin waits for d, and reports whether callers are interrupted before.
func (c *cluster) interruptedWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.interrupted:
		return true
	case <-timer.C:
		return false
	}
}

// watchEvery is how often watch looks at the table.
const watchEvery = 100 * time.Millisecond

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

// Elsewhere also has the table reloaded: a server that cannot be reached may have been replaced
// by now.
func (c *cluster) Elsewhere(n *server.Node, key string) bool {
	c.client.ReloadState(context.Background())
	now := c.Known(key)
	return now != nil && now != n
}

// Sweep also gives up each node on which nothing was sent for a while and whose server no
// longer has the node's slot: that server is no longer a master, or no longer there.
func (c *cluster) Sweep(now time.Time) {
	for _, m := range c.members() {
		m.Sweep(now)
		c.mu.Lock()
		key, used := m.key, m.at
		c.mu.Unlock()
		if now.Sub(used) < retireAfter || c.has(m.Node, key) {
			continue
		}
		if m.Retire() {
			c.mu.Lock()
			if c.byAddr[m.Addr] == m {
				delete(c.byAddr, m.Addr)
				delete(c.options, m.Addr)
			}
			c.mu.Unlock()
		}
	}
}

// retireAfter is how long the connections to a server are kept after it has lost its slots.
const retireAfter = 30 * time.Second

// has reports whether the table names the node's server for the key. It reports true if the
// table cannot be read.
func (c *cluster) has(n *server.Node, key string) bool {
	master, err := c.client.MasterForKey(context.Background(), key)
	return err != nil || master.Options().Addr == n.Addr
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

func (c *cluster) members() []*member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.byAddr))
}
