// On a real cluster, callers do not see that slots move and masters change.

package conn_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
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
	scene := func(name string, run func(*testing.T, *redistest.ClusterSet)) {
		t.Run(name, func(t *testing.T) { run(t, c) })
	}
	scene("scripts are loaded node by node", clusterLoadsScripts)
	scene("an open slot", clusterOpenSlot)
	scene("a redirection that has gone out of date", clusterLateAsk)
	scene("a slot moves under load", clusterSlotMoves)
	scene("a batch follows a slot", clusterBatchFollows)
	scene("a planned failover", clusterPlannedFailover)
	scene("a killed master", clusterKilledMaster) // the last, because it kills a node
}

func clusterLoadsScripts(t *testing.T, c *redistest.ClusterSet) {
	m := newManager(t, c.Client(t))
	redistest.Equal(t, m.KnownNode("load"), "", "%q is known before there is a table")
	for i := range 12 {
		key := fmt.Sprint("load", i)
		mustRun(t, m, newCount(key))
		c.MasterOf(key).FlushScripts()
		calls := counts(key, key)
		for j, err := range runBatch(t.Context(), t, m, nodeOf(t, m, key), calls) {
			if err != nil || calls[j].Status() != 1 {
				t.Errorf("%s: batch %d: %v", key, j, err)
			}
		}
	}
	masters, err := m.Masters(t.Context())
	if err != nil || len(masters) != 3 {
		t.Errorf("the masters are %q, %v", masters, err)
	}
	if sharded, err := m.Sharded(t.Context()); sharded != redistest.HasShardedChannels(t) || err != nil {
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
		if want := []int64{2, 1, 2}[i]; call.Int(2) < want {
			t.Errorf("%s: %d executions, want %d at least", key, call.Int(2), want)
		}
	}
	batch := counts("{open}there", "{open}new", "{open}newer")
	for i, err := range runBatch(t.Context(), t, m, nodeOf(t, m, "{open}"), batch) {
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
	redistest.Equal(t, enough.Int(2), 1, "the script was given %d keys, want those that are enough")
	move.Finish()
	served(t, time.Minute, both)
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
	for i := range 30 { // so that all masters have the script
		mustRun(t, m, &conn.Call{Script: exists, Keys: []string{fmt.Sprint("late", i)}})
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
	if err := late.wait(t, time.Minute); err != nil || call.Status() != 1 || second.To != first.To {
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
	stays := "{batch}"
	for i := 0; keys.Slot(stays) == keys.Slot("{batch}") || nodeOf(t, m, stays) != node; i++ {
		stays = fmt.Sprint("stays", i)
	}
	c.MoveSlot("{batch}")
	batch := counts("{batch}a", stays, "{batch}b")
	for i, err := range runBatch(t.Context(), t, m, node, batch) {
		if err != nil || batch[i].Status() != 1 {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if now := nodeOf(t, m, "{batch}"); now == node {
		t.Errorf("the slot is still looked for at %s", node)
	}
	if batch[0].Int(2) < 2 {
		t.Errorf("%d executions, want 2 at least", batch[0].Int(2))
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

// The owner of a Manager hears that the keys of a slot are at another server, when a server says that it has moved.
func TestKeysOfASlotThatHasMovedAreDoubted(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var doubted []string
		b.onCluster(t, func(d conn.Doubt) {
			for _, key := range []string{"k", "{k}2", "other"} {
				if d.Concerns(key) {
					doubted = append(doubted, key)
				}
			}
		})
		mustRun(t, b.Manager, newCount("k"))
		doubted = nil // by the first connections
		b.proxy.OnCommand(firstScripts(1, redistest.ReplyError("MOVED 12706 127.0.0.1:6379")))
		mustRun(t, b.Manager, newCount("k"))
		time.Sleep(time.Second) // go-redis may still be about to reload the table
		if want := []string{"k", "{k}2"}; !slices.Equal(doubted, want) {
			t.Errorf("doubted %v, want %v", doubted, want)
		}
	})
}
