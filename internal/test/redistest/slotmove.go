// A SlotMove moves one slot between masters step by step, so that a test can look at the state in
// between, or stay in it.

package redistest

import (
	"fmt"
	"strings"
)

// SlotMove is a slot that is open: its old owner answers ASK for keys that it does not have,
// and commands with keys on both sides get TRYAGAIN.
type SlotMove struct {
	Slot     int
	From, To *Proc

	cluster  *ClusterSet
	from, to *clusterNode
}

// MoveSlot moves key's slot with its keys to another master, and returns that master when all
// running nodes know.
func (c *ClusterSet) MoveSlot(key string) *Proc {
	c.t.Helper()
	return c.OpenSlot(key).Finish()
}

// OpenSlot opens key's slot towards another master, and moves nothing yet.
func (c *ClusterSet) OpenSlot(key string) *SlotMove {
	c.t.Helper()
	slot := c.slot(key)
	from := c.masterOf(slot)
	to := c.otherMaster(from)
	// This order matters: an open source sends clients to the target, which must be ready.
	c.do(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", from.id)
	c.do(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", to.id)
	return &SlotMove{Slot: slot, From: from.Proc, To: to.Proc, cluster: c, from: from, to: to}
}

// otherMaster returns the next running master after from in the order of the
// nodes, so that repeated moves visit all of them.
func (c *ClusterSet) otherMaster(from *clusterNode) *clusterNode {
	c.t.Helper()
	at := 0
	for i, n := range c.nodes {
		if n == from {
			at = i
		}
	}
	for i := range c.nodes {
		n := c.nodes[(at+1+i)%len(c.nodes)]
		if n == from || !n.Running() {
			continue
		}
		if info, err := infoOf(n.Proc, "replication"); err == nil && strings.Contains(info, "role:master") {
			return n
		}
	}
	c.t.Fatalf("redistest: no other master than %s runs", from.Addr())
	return nil
}

// MoveKeys moves the named keys to the new owner and leaves the slot open. A key that is not
// there, or no longer there, is skipped.
func (m *SlotMove) MoveKeys(keys ...string) {
	m.cluster.t.Helper()
	if len(keys) == 0 {
		return
	}
	args := []any{"MIGRATE", "127.0.0.1", m.to.port, "", 0, 5000, "KEYS"}
	for _, key := range keys {
		args = append(args, key)
	}
	m.cluster.do(m.from, args...)
}

// Keys returns the keys of the slot that its old owner still has.
func (m *SlotMove) Keys() []string {
	m.cluster.t.Helper()
	var keys []string
	for _, key := range m.cluster.do(m.from, "CLUSTER", "GETKEYSINSLOT", m.Slot, 1000).([]any) {
		keys = append(keys, key.(string))
	}
	return keys
}

// Finish moves the remaining keys, hands the slot over, and returns the new owner when all
// running nodes know.
func (m *SlotMove) Finish() *Proc {
	c := m.cluster
	c.t.Helper()
	// The target comes first, so that the slot is never without an owner. The source refuses while
	// it still has keys.
	assign := func() error {
		if _, err := m.to.try("CLUSTER", "SETSLOT", m.Slot, "NODE", m.to.id); err != nil {
			return err
		}
		_, err := m.from.try("CLUSTER", "SETSLOT", m.Slot, "NODE", m.to.id)
		return err
	}
	c.given.Store(m.Slot, m.to)
	Eventually(c.t, patience, fmt.Sprintf("hand over slot %d", m.Slot), func() error {
		for keys := m.Keys(); len(keys) > 0; keys = m.Keys() {
			m.MoveKeys(keys...)
		}
		return assign()
	})
	Eventually(c.t, patience, fmt.Sprintf("all nodes know the owner of slot %d", m.Slot), func() error {
		err := c.agree(m.Slot, m.to)
		if err != nil {
			_ = assign() // an earlier heartbeat may have set the owner back
		}
		return err
	})
	return m.To
}
