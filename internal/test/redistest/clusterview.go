// What cluster nodes report about each other, and who serves a slot.

package redistest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// nodeView is one line of CLUSTER NODES.
type nodeView struct {
	id, flags, master string
	epoch             int
	ranges            []string
}

// view returns what the node reports about all nodes.
func (n *clusterNode) view() ([]nodeView, error) {
	reply, err := n.try("CLUSTER", "NODES")
	if err != nil {
		return nil, err
	}
	var view []nodeView
	for line := range strings.Lines(reply.(string)) {
		f := strings.Fields(line)
		if len(f) < 8 {
			return nil, fmt.Errorf("CLUSTER NODES line %q", line)
		}
		epoch, err := strconv.Atoi(f[6])
		if err != nil {
			return nil, fmt.Errorf("CLUSTER NODES line %q: %w", line, err)
		}
		view = append(view, nodeView{id: f[0], flags: f[2], master: f[3], epoch: epoch, ranges: f[8:]})
	}
	return view, nil
}

func (v nodeView) has(flag string) bool { return slices.Contains(strings.Split(v.flags, ","), flag) }

// serves ignores the bracketed entries of slots that are being moved.
func (v nodeView) serves(slot int) bool {
	for _, r := range v.ranges {
		first, last, isRange := strings.Cut(r, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 == nil && err2 == nil && from <= slot && slot <= to {
			return true
		}
	}
	return false
}

// MasterOf returns the running node that serves key's slot. It waits for a
// failover under way to end.
func (c *ClusterSet) MasterOf(key string) *Proc {
	c.t.Helper()
	return c.masterOf(c.slot(key)).Proc
}

// slot asks a node for key's slot and does not compute the hash itself, because the node's rule for
// braces is what counts.
func (c *ClusterSet) slot(key string) int {
	c.t.Helper()
	for _, n := range c.nodes {
		if n.Running() {
			return int(c.do(n, "CLUSTER", "KEYSLOT", key).(int64))
		}
	}
	c.t.Fatalf("redistest: no cluster node runs")
	return 0
}

func (c *ClusterSet) masterOf(slot int) *clusterNode {
	c.t.Helper()
	var owner *clusterNode
	Eventually(c.t, patience, fmt.Sprintf("a running master of slot %d", slot), func() error {
		owner = c.owner(slot)
		if owner == nil {
			// Of two nodes that move a slot to and fro, each may come to take the other for its owner: two epochs were
			// equal for a moment. An operator would give it to one of them, so it has another epoch.
			if to, moved := c.given.Load(slot); moved {
				_, _ = to.(*clusterNode).try("CLUSTER", "BUMPEPOCH")
				_, _ = to.(*clusterNode).try("CLUSTER", "SETSLOT", slot, "NODE", to.(*clusterNode).id)
			}
			return fmt.Errorf("no running node serves it")
		}
		return nil
	})
	return owner
}

// owner asks each node about itself, because the other nodes may not know yet. If two nodes claim
// the slot, as after the thaw of an old master, the node with the later epoch is right.
func (c *ClusterSet) owner(slot int) *clusterNode {
	var owner *clusterNode
	last := -1
	for _, n := range c.nodes {
		if !n.Running() {
			continue
		}
		view, err := n.view()
		if err != nil {
			continue
		}
		for _, e := range view {
			if e.has("myself") && e.has("master") && e.serves(slot) && e.epoch > last {
				owner, last = n, e.epoch
			}
		}
	}
	return owner
}

// agree returns nil when every running node takes owner for the slot's master
// and every replica of owner is in sync.
func (c *ClusterSet) agree(slot int, owner *clusterNode) error {
	return c.everyNode(func(n *clusterNode) error {
		view, err := n.view()
		if err != nil {
			return err
		}
		for _, e := range view {
			if e.serves(slot) && e.id != owner.id {
				return fmt.Errorf("takes %s for the master of slot %d", e.id, slot)
			}
		}
		return n.inSync()
	})
}
