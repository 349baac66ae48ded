// The servers of a cluster that callers were led to: how one joins, is doubted, and is given up.

package route

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn/server"
)

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

func (c *cluster) members() []*member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.byAddr))
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

// watch doubts all keys once another server has key, which the member had when it failed: a
// failover may have forgotten what was written last. If the server itself comes back, the Client
// doubts its keys at the next connection to it.
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

// watchEvery is how often watch looks at the table.
const watchEvery = 100 * time.Millisecond

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

// has reports whether the table names the node's server for the key. It reports true if the
// table cannot be read.
func (c *cluster) has(n *server.Node, key string) bool {
	master, err := c.client.MasterForKey(context.Background(), key)
	return err != nil || master.Options().Addr == n.Addr
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
