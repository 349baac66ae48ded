// On a real cluster, callers do not see that slots move and masters change.

package conn_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// All scenes of TestCluster share one cluster, because it takes seconds to form. A node that stands still for
// a while is not taken for dead.
func TestCluster(t *testing.T) {
	c := redistest.Cluster(t, 3, 1, "--cluster-node-timeout", "4000")
	for _, test := range []struct {
		name string
		run  func(*testing.T, *redistest.ClusterSet)
	}{
		{"scripts are loaded node by node", clusterLoadsScripts},
		{"an open slot", clusterOpenSlot},
		{"a redirection that has gone out of date", clusterLateAsk},
		{"a slot moves under load", clusterSlotMoves},
		{"a batch follows a slot", clusterBatchFollows},
		{"a bundle keeps to one slot", clusterBundles},
		{"a planned failover", clusterPlannedFailover},
		{"a killed master", clusterKilledMaster}, // this scene is the last: it kills a node
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// keyOnEach returns one key for each master.
func keyOnEach(c *redistest.ClusterSet, prefix string) []string {
	found := make(map[*redistest.Proc]string)
	for i := 0; len(found) < 3; i++ {
		key := fmt.Sprint(prefix, i)
		found[c.MasterOf(key)] = key
	}
	all := make([]string, 0, len(found))
	for _, key := range found {
		all = append(all, key)
	}
	return all
}

func clusterLoadsScripts(t *testing.T, c *redistest.ClusterSet) {
	m := newManager(t, c.Client(t))
	if known := m.KnownNode("load"); known != "" {
		t.Errorf("%q is known before there is a table", known)
	}
	for _, key := range keyOnEach(c, "load") {
		first, next := newCount(key), newCount(key)
		mustRun(t, m, first)
		mustRun(t, m, next)
		if first.Attempts != 2 || next.Attempts != 1 {
			t.Errorf("%s: %d and %d attempts, want 2 and 1", key, first.Attempts, next.Attempts)
		}
		c.MasterOf(key).FlushScripts()
		calls := []*conn.Call{newCount(key), newCount(key)}
		for i, err := range runBatch(t.Context(), t, m, nodeOf(t, m, key), calls) {
			if err != nil || calls[i].Status() != 1 {
				t.Errorf("%s: batch %d: %v", key, i, err)
			}
		}
	}
	masters, err := m.Masters(t.Context())
	if err != nil || len(masters) != 3 {
		t.Errorf("the masters are %q, %v", masters, err)
	}
	if sharded, err := m.Sharded(t.Context()); !sharded || err != nil {
		t.Errorf("sharded: %v, %v", sharded, err)
	}
}

func clusterOpenSlot(t *testing.T, c *redistest.ClusterSet) {
	m := newManager(t, c.Client(t))
	mustRun(t, m, newCount("{open}there"))
	move := c.OpenSlot("{open}")

	// A call with one key finds the key where it is; new keys go to the slot's new node.
	for i, key := range []string{"{open}there", "{open}new", "{open}new"} {
		call := newCount(key)
		mustRun(t, m, call)
		if want := []int64{2, 1, 2}[i]; call.Int(2) != want {
			t.Errorf("%s: %d executions, want %d", key, call.Int(2), want)
		}
	}
	node := nodeOf(t, m, "{open}")
	batch := []*conn.Call{newCount("{open}there"), newCount("{open}new"), newCount("{open}newer")}
	for i, err := range runBatch(t.Context(), t, m, node, batch) {
		if err != nil || batch[i].Status() != 1 {
			t.Errorf("batch %d: %v", i, err)
		}
	}

	// Each node has one of the two keys: the cluster answers TRYAGAIN until the slot has moved.
	both := start(m, &conn.Call{Script: pair, Keys: []string{"{open}there", "{open}new"}, Args: []any{"v"}})
	select {
	case <-both.done:
		t.Errorf("keys on both sides: %v, %v", both.Reply, both.err)
	case <-time.After(200 * time.Millisecond):
	}
	// A call for which fewer keys are enough does not wait.
	enough := &conn.Call{Script: lenient, Keys: []string{"{open}there", "{open}new"}, Enough: 1}
	mustRun(t, m, enough)
	if got := enough.Int(2); got != 1 {
		t.Errorf("the script was given %d keys, want those that are enough", got)
	}
	move.Finish()
	if err := both.wait(t, 10*time.Second); err != nil {
		t.Errorf("keys on both sides: %v", err)
	}
	rdb := c.Client(t)
	for _, key := range []string{"{open}there", "{open}new"} {
		if got := rdb.Get(t.Context(), key).Val(); got != "v" {
			t.Errorf("%s = %q", key, got)
		}
	}
}

// lateAsk is a connection that holds back what the client sends after a redirection by ASK.
type lateAsk struct {
	net.Conn
	held chan<- struct{} // told when a write is held back
	pass <-chan struct{}
}

func (c lateAsk) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("asking")) {
		select {
		case c.held <- struct{}{}:
		default: // only the first write is told
		}
		<-c.pass
	}
	return c.Conn.Write(b)
}

// A node that is about to receive a slot says that a key is missing if the key has already moved on
// or has not arrived yet. A redirection to that node may be so old that the key is elsewhere by
// now.
func clusterLateAsk(t *testing.T, c *redistest.ClusterSet) {
	const key = "{late}there"
	held, pass := make(chan struct{}, 1), make(chan struct{})
	m := newManager(t, c.Client(t, func(o *redis.ClusterOptions) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return lateAsk{conn, held, pass}, err
		}
	}))
	mustRun(t, m, newCount(key))
	for _, other := range keyOnEach(c, "late") { // so that all masters have the script
		mustRun(t, m, &conn.Call{Script: exists, Keys: []string{other}})
	}
	call := &conn.Call{Script: exists, Keys: []string{key}}
	first := c.OpenSlot(key)
	first.MoveKeys(key)
	late := start(m, call)
	<-held
	for to := first.Finish(); to != first.From; {
		to = c.OpenSlot(key).Finish()
	}
	second := c.OpenSlot(key) // to the same server, with the key still where it was
	close(pass)
	if err := late.wait(t, 10*time.Second); err != nil || call.Status() != 1 || second.To != first.To {
		t.Errorf("%v, reply %v in %d attempts, of a key that is there", err, call.Reply, call.Attempts)
	}
	second.Finish()
}

// load runs calls on all the keys until stop is called. stop fails t if there was an error, or if a key's
// calls were executed more or less often than their callers know of.
func load(t *testing.T, m *conn.Manager, c *redistest.ClusterSet, keys ...string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	least, most := make([]int, len(keys)), make([]int, len(keys))
	for i, key := range keys {
		wg.Go(func() {
			for ctx.Err() == nil {
				call := newCount(key)
				err := m.Run(ctx, call)
				most[i] += call.Attempts
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					t.Errorf("%s: %v", key, err)
					return
				}
				least[i]++
			}
		})
	}
	end := func() {
		cancel()
		wg.Wait()
	}
	t.Cleanup(end)
	return func() {
		end()
		rdb := c.Client(t)
		for i, key := range keys {
			got, err := rdb.Get(t.Context(), key).Int()
			if err != nil || got == 0 || got < least[i] || got > most[i] {
				t.Errorf("%s: %d executions (%v), want %d to %d", key, got, err, least[i], most[i])
			}
		}
	}
}

func clusterSlotMoves(t *testing.T, c *redistest.ClusterSet) {
	m := newManager(t, c.Client(t))
	stop := load(t, m, c, "{moving}a", "{moving}b", "{moving}c")
	for range 4 {
		move := c.OpenSlot("{moving}")
		move.MoveKeys("{moving}a")
		time.Sleep(20 * time.Millisecond)
		move.Finish()
	}
	stop()
}

func clusterBatchFollows(t *testing.T, c *redistest.ClusterSet) {
	m := newManager(t, c.Client(t))
	mustRun(t, m, newCount("{batch}a"))
	node := nodeOf(t, m, "{batch}")
	stays := keyOn(t, m, node, keys.Slot("{batch}"))
	c.MoveSlot("{batch}")
	batch := []*conn.Call{newCount("{batch}a"), newCount(stays), newCount("{batch}b")}
	for i, err := range runBatch(t.Context(), t, m, node, batch) {
		if err != nil || batch[i].Status() != 1 {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if now := nodeOf(t, m, "{batch}"); now == node {
		t.Errorf("the slot is still looked for at %s", node)
	}
	if batch[0].Int(2) != 2 {
		t.Errorf("%d executions, want 2", batch[0].Int(2))
	}
}

// keyOn returns a key of that node in a slot other than not.
func keyOn(t *testing.T, m *conn.Manager, node string, not int) string {
	t.Helper()
	for i := 0; ; i++ {
		key := fmt.Sprint("stays", i)
		if keys.Slot(key) != not && nodeOf(t, m, key) == node {
			return key
		}
	}
}

// Of the calls that queue for one server, those of one slot go out together. No server is sent a
// script with keys of two slots.
func clusterBundles(t *testing.T, c *redistest.ClusterSet) {
	m := newManager(t, c.Client(t))
	const slots, perSlot, rounds = 8, 24, 40
	var all sync.WaitGroup
	for i := range slots * perSlot {
		tag := fmt.Sprintf("{bundle%d}", i%slots)
		all.Go(func() {
			for range rounds {
				key := fmt.Sprint(tag, i)
				mustRun(t, m, &conn.Call{Script: put, Keys: []string{key, tag + "notes"}, Args: []any{key, int64(7)}})
			}
		})
	}
	all.Wait()
	scripts := 0
	for i := range slots {
		master := c.MasterOf(fmt.Sprintf("{bundle%d}", i)).Admin()
		notes, err := master.LLen(t.Context(), fmt.Sprintf("{bundle%d}notes", i)).Result()
		if err != nil || notes != perSlot*rounds {
			t.Errorf("slot %d: %d calls have run, %v", i, notes, err)
		}
	}
	for _, key := range keyOnEach(c, "bundle") {
		info := c.MasterOf(key).Admin().InfoMap(t.Context(), "all").Val()
		if refused := fmt.Sprint(info["Errorstats"]); strings.Contains(refused, "CROSSSLOT") {
			t.Errorf("a server has refused keys of several slots: %s", refused)
		}
		var calls int
		_, _ = fmt.Sscanf(info["Commandstats"]["cmdstat_evalsha"], "calls=%d", &calls)
		scripts += calls
	}
	if scripts > slots*perSlot*rounds*9/10 {
		t.Errorf("%d calls took %d scripts", slots*perSlot*rounds, scripts)
	}
}

func clusterPlannedFailover(t *testing.T, c *redistest.ClusterSet) {
	m := newManager(t, c.Client(t))
	stop := load(t, m, c, "{planned}a", "{planned}b")
	c.Failover("{planned}")
	time.Sleep(100 * time.Millisecond)
	stop()
}

func clusterKilledMaster(t *testing.T, c *redistest.ClusterSet) {
	// go-redis by itself asks for a new table only every minute.
	m := newManager(t, c.Client(t, func(o *redis.ClusterOptions) { o.ClusterStateReloadInterval = time.Minute }))
	mustRun(t, m, newCount("{killed}"))
	c.KillMasterOf("{killed}")
	mustRun(t, m, newCount("{killed}"))
}
