// A Redis Cluster of plain processes, formed from Go.

package redistest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const slots = 16384

// ClusterSet is a cluster of masters, each with its replicas. Its methods fail
// the test and so belong to the test's own goroutine.
type ClusterSet struct {
	t       testing.TB
	host    string // the address by which the nodes know each other
	masters int
	nodes   []*clusterNode
	given   sync.Map // the node to which each slot was moved last
}

// clusterNode is a process and its identity, which it keeps for life.
type clusterNode struct {
	*Proc
	id string
}

// Cluster starts masters nodes that share the slots evenly, each with replicas
// replicas, and returns when every node finds the cluster ok and every replica
// is in sync, about 2 s. A node that does not answer for 1 s counts as failed,
// unless args, which are options of all nodes, set another time.
func Cluster(t testing.TB, masters, replicas int, args ...string) *ClusterSet {
	t.Helper()
	return cluster(t, "127.0.0.1", masters, replicas, args)
}

// IPv6Cluster is [Cluster] with nodes that know each other by IPv6 addresses, and report these
// to clients.
func IPv6Cluster(t testing.TB, masters, replicas int, args ...string) *ClusterSet {
	t.Helper()
	needsIPv6(t)
	return cluster(t, "::1", masters, replicas, append(args, "--bind", "127.0.0.1", "::1"))
}

// needsIPv6 calls [Missing] if the loopback interface has no IPv6.
func needsIPv6(t testing.TB) {
	t.Helper()
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		Missing(t, "no IPv6 on the loopback interface")
		return
	}
	listener.Close()
}

func cluster(t testing.TB, host string, masters, replicas int, args []string) *ClusterSet {
	t.Helper()
	args = append(withDefaults(args,
		"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0",
		"--cluster-node-timeout", "1000",
		"--cluster-replica-validity-factor", "0"), // any replica may be elected, however late
		// A node that no other node has met does not know its own address.
		"--cluster-enabled", "yes", "--cluster-announce-ip", host)
	c := &ClusterSet{t: t, host: host, masters: masters}
	for range masters * (1 + replicas) {
		c.nodes = append(c.nodes, &clusterNode{Proc: startServer(t, true, args)})
	}
	c.form(masters)
	return c
}

// form gives the slots to the first nodes, introduces all nodes to each other, and makes the
// rest follow the first nodes in turn.
func (c *ClusterSet) form(masters int) {
	c.t.Helper()
	for i, n := range c.nodes {
		n.id = c.do(n, "CLUSTER", "MYID").(string)
		c.do(n, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
		if i < masters {
			c.do(n, addSlots(i*slots/masters, (i+1)*slots/masters)...)
		}
	}
	for _, n := range c.nodes {
		c.meet(n)
	}
	Eventually(c.t, patience, "all nodes know each other", func() error {
		return c.everyNode(func(n *clusterNode) error {
			if view, err := n.view(); err == nil && len(view) < len(c.nodes) {
				c.meet(n) // Redis gives up a handshake that takes more than a second
			}
			return c.knowsAll(n, 0)
		})
	})
	for i, n := range c.nodes[masters:] {
		c.do(n, "CLUSTER", "REPLICATE", c.nodes[i%masters].id)
	}
	c.Settle()
}

// meet introduces a node to all others.
func (c *ClusterSet) meet(n *clusterNode) {
	c.t.Helper()
	for _, other := range c.nodes {
		if other != n {
			c.do(n, "CLUSTER", "MEET", c.host, other.port)
		}
	}
}

// addSlots names the slots one by one: only Redis 7 and later know ranges.
func addSlots(from, to int) []any {
	args := []any{"CLUSTER", "ADDSLOTS"}
	for slot := from; slot < to; slot++ {
		args = append(args, slot)
	}
	return args
}

// do runs a command on one node and fails the test on an error.
func (c *ClusterSet) do(n *clusterNode, args ...any) any {
	c.t.Helper()
	reply, err := n.try(args...)
	if err != nil {
		c.t.Fatalf("redistest: %s: %v: %v", n.Addr(), args[:min(len(args), 4)], err)
	}
	return reply
}

// try runs a command with a time limit, because the test may have frozen the node.
func (n *clusterNode) try(args ...any) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return n.Admin().Do(ctx, args...).Result()
}

// everyNode returns the first error of f among the running nodes.
func (c *ClusterSet) everyNode(f func(*clusterNode) error) error {
	for _, n := range c.nodes {
		if !n.Running() {
			continue
		}
		if err := f(n); err != nil {
			return fmt.Errorf("%s: %w", n.Addr(), err)
		}
	}
	return nil
}

func (c *ClusterSet) knowsAll(n *clusterNode, replicas int) error {
	view, err := n.view()
	if err != nil {
		return err
	}
	slaves := 0
	for _, e := range view {
		if e.has("handshake") || e.has("fail") || e.has("fail?") {
			return fmt.Errorf("sees %s as %s", e.id, e.flags)
		}
		if e.has("slave") {
			slaves++
		}
	}
	if len(view) != len(c.nodes) || slaves != replicas {
		return fmt.Errorf("knows %d of %d nodes and %d of %d replicas", len(view), len(c.nodes), slaves, replicas)
	}
	return nil
}

func (c *ClusterSet) ready(n *clusterNode, replicas int) error {
	if err := c.knowsAll(n, replicas); err != nil {
		return err
	}
	state, err := n.try("CLUSTER", "INFO")
	if err != nil {
		return err
	}
	if !strings.Contains(state.(string), "cluster_state:ok") {
		return fmt.Errorf("cluster state is not ok")
	}
	return n.inSync()
}

// inSync returns nil if the node is a master, or has all that its master has.
func (n *clusterNode) inSync() error {
	info, err := infoOf(n.Proc, "replication")
	if err == nil && strings.Contains(info, "role:slave") && !strings.Contains(info, "master_link_status:up") {
		return fmt.Errorf("replica is not in sync")
	}
	return err
}

// Client returns a cluster client with go-redis's defaults, except that
// maintenance notifications are off, as changed by opts. t.Cleanup closes it.
func (c *ClusterSet) Client(t testing.TB, opts ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	t.Helper()
	o := &redis.ClusterOptions{Addrs: c.Addrs(), MaintNotificationsConfig: quiet()}
	for _, opt := range opts {
		opt(o)
	}
	client := redis.NewClusterClient(o)
	t.Cleanup(func() { client.Close() })
	return client
}

// Addrs returns the addresses of all nodes.
func (c *ClusterSet) Addrs() []string {
	var addrs []string
	for _, n := range c.nodes {
		addrs = append(addrs, n.Addr())
	}
	return addrs
}

// Nodes returns all nodes, running or not.
func (c *ClusterSet) Nodes() []*Proc {
	var procs []*Proc
	for _, n := range c.nodes {
		procs = append(procs, n.Proc)
	}
	return procs
}

// Failover makes a replica of key's master the master, as a planned failover that loses
// nothing. It returns the replica when all running nodes know and the old master follows it.
func (c *ClusterSet) Failover(key string) *Proc {
	c.t.Helper()
	slot := c.slot(key)
	old := c.masterOf(slot)
	replica := c.replicaOf(old)
	Eventually(c.t, 2*patience, "planned failover", func() error {
		// An error means that the replica is the master already, or is not in sync yet. A vote
		// may also fail without an error, so ask again after a while.
		_, failoverErr := replica.try("CLUSTER", "FAILOVER")
		return poll(10*time.Second, func() error {
			if c.owner(slot) != replica {
				return fmt.Errorf("%s is not the master yet (CLUSTER FAILOVER: %v)", replica.Addr(), failoverErr)
			}
			return c.agree(slot, replica)
		})
	})
	return replica.Proc
}

func (c *ClusterSet) replicaOf(master *clusterNode) *clusterNode {
	c.t.Helper()
	var replica *clusterNode
	Eventually(c.t, patience, "a running replica of "+master.Addr(), func() error {
		view, err := master.view()
		if err != nil {
			return err
		}
		for _, e := range view {
			i := slices.IndexFunc(c.nodes, func(n *clusterNode) bool { return n.id == e.id })
			if e.has("slave") && e.master == master.id && i >= 0 && c.nodes[i].Running() {
				replica = c.nodes[i]
				return nil
			}
		}
		return fmt.Errorf("it has none")
	})
	return replica
}

// Settle waits until all running nodes find the cluster ok and each other alive, and the
// replicas are in sync. All nodes must be running: a node that is not back counts as failed.
func (c *ClusterSet) Settle() {
	c.t.Helper()
	Eventually(c.t, patience, "the cluster is whole", func() error {
		return c.everyNode(func(n *clusterNode) error { return c.ready(n, len(c.nodes)-c.masters) })
	})
}

// KillMasterOf kills the master of key's slot with SIGKILL and returns it.
// [ClusterSet.MasterOf] then waits for its successor.
func (c *ClusterSet) KillMasterOf(key string) *Proc {
	c.t.Helper()
	master := c.MasterOf(key)
	master.Kill()
	return master
}
