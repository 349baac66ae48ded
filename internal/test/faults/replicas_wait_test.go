// WAIT reports about the connection that it is sent on, so the WAIT of a grant must be sent on the
// grant's own connection, after a request of its own that has written.

package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/lockertest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// wireLog records the commands that passed a proxy, in the order in which they came.
type wireLog struct {
	mu       sync.Mutex
	commands []wireCommand
}

type wireCommand struct {
	redistest.Command
	whole bool // the command and its reply passed
}

func (c wireCommand) isScript() bool { return c.Name == "EVALSHA" || c.Name == "EVAL" }

// note is a proxy's rule. About one command in ninety is lost, with its connection, before or after
// Redis has executed it.
func (w *wireLog) note(c redistest.Command) redistest.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	fault := redistest.Fault(redistest.Pass)
	n := len(w.commands)
	switch script := c.Name == "EVALSHA" || c.Name == "EVAL"; {
	case script && n%89 == 0:
		fault = redistest.CloseAfterExec
	case c.Name == "WAIT" && n%97 == 0:
		fault = redistest.DropBefore // the grant's reply is heard, the reply of its WAIT is not
	case c.Name == "WAIT" && n%101 == 0:
		fault = redistest.CloseAfterExec
	}
	w.commands = append(w.commands, wireCommand{c, fault == redistest.Fault(redistest.Pass)})
	return fault
}

func (w *wireLog) len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.commands)
}

// waited reports whether, among the first n commands, a WAIT followed that owner's request on the
// same connection, and both got their replies.
func (w *wireLog) waited(owner string, n int) bool {
	asked := make(map[int64]bool) // by connection
	for _, c := range w.commands[:n] {
		switch {
		case !c.whole:
		case c.isScript() && slices.Contains(c.Args, owner):
			asked[c.Conn] = true
		case c.Name == "WAIT" && asked[c.Conn]:
			return true
		}
	}
	return false
}

// Many goroutines lock at once, on connections that break all the time. Each grant's request and
// its WAIT are sent on one connection.
func TestInterleaving_WaitOnTheConnectionOfItsGrant(t *testing.T) {
	t.Parallel()
	master, _ := withReplica(t)
	proxy := redistest.Proxy(t, master.Addr())
	client := clienttest.OpenClient(t, proxy.Client(t), holdfast.WithReplicas(1))
	var log wireLog
	proxy.OnCommand(log.note)

	const workers = 24 // more than there are connections, so that requests share pipelines
	rounds := redistest.Count(t, 400)
	var (
		mu      sync.Mutex
		granted = make(map[string]int) // owner to how many commands had passed when Lock returned
		running sync.WaitGroup
	)
	for i := range workers {
		running.Go(func() {
			for range rounds {
				l, err := client.Mutex(fmt.Sprint("m", i)).Lock(clienttest.Generous(t))
				if errors.Is(err, holdfast.ErrNotReplicated) {
					continue // refused: there is nothing to show
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				granted[l.Owner().String()] = log.len()
				mu.Unlock()
				clienttest.GiveBack(t, l)
			}
		})
	}
	running.Wait()
	log.mu.Lock()
	defer log.mu.Unlock()
	for owner, n := range granted {
		if !log.waited(owner, n) {
			t.Errorf("%s was granted without a WAIT on the connection of its request", owner)
		}
	}
	written := make(map[int64]bool) // connections with a script since their last WAIT
	for _, c := range log.commands {
		switch {
		case c.isScript():
			written[c.Conn] = true
		case c.Name == "WAIT" && !written[c.Conn]:
			t.Errorf("a WAIT on connection %d, on which nothing was written for it", c.Conn)
		case c.Name == "WAIT":
			written[c.Conn] = false
		}
	}
	if broken := proxy.Injected(); len(granted) < workers*rounds/2 || broken < rounds/4 {
		t.Errorf("%d grants, %d breaks: that shows nothing", len(granted), broken)
	}
	clienttest.Figure(t, "%d grants over connections that broke %d times: each WAIT on its grant's own", len(granted), proxy.Injected())
}

// If a script answers "yours" and has written nothing, the WAIT after it answers at once, whatever
// the replicas have. A server counts from the last write of the connection, and after a break the
// connection is a new one. So a request that finds itself executed writes all the same, even if
// there is enough time to live. A renewal does the same.
func TestInterleaving_WaitAfterARepeatedRequest(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t)
	onlooker := server.Client(t)
	for _, kind := range lockertest.Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			proxy := redistest.Proxy(t, server.Addr())
			client := clienttest.OpenClient(t, proxy.Client(t))
			locker := func(name string) holdfast.Locker {
				if kind.Prepare != nil {
					if err := kind.Prepare(clienttest.Generous(t), client, name); err != nil {
						t.Fatal(err)
					}
				}
				return kind.Locker(client, name, holdfast.Renewed(3*time.Second))
			}
			clienttest.GiveBack(t, clienttest.Grab(t, locker("loads the scripts"))) // and agrees about stripes
			name := "repeated:" + kind.Name
			m := locker(name)
			clienttest.GiveBack(t, clienttest.Grab(t, m))

			// The acquire is executed, its reply is lost, and the client sends it again.
			watch := &writes{rdb: onlooker, name: name}
			proxy.OnCommand(watch.repeat)
			l := clienttest.Grab(t, m)
			proxy.OnCommand(nil)
			if watch.runs != 2 {
				t.Fatalf("%d requests, want one that is sent twice", watch.runs)
			}
			if watch.now(t) == watch.before {
				t.Error("the repeated acquire has written nothing")
			}

			// A renewal finds a longer time to live than its own.
			watch = &writes{rdb: onlooker, name: name, seen: make(chan struct{})}
			proxy.OnCommand(watch.renewal)
			select {
			case <-watch.seen:
			case <-time.After(10 * time.Second):
				t.Fatal("no two renewals")
			}
			proxy.OnCommand(nil)
			// On a machine with no processor to spare, the second renewal may be here before the
			// first has run. With the defect neither of them would write.
			redistest.Eventually(t, 10*time.Second, "a renewal has written something", func() error {
				if watch.now(t) == watch.before {
					return errors.New("nothing yet")
				}
				return nil
			})
			clienttest.GiveBack(t, l)
		})
	}
}

// writes counts what a server has written around one request.
type writes struct {
	rdb  *redis.Client
	name string
	seen chan struct{} // closed when a second renewal has come

	mu     sync.Mutex // guards the fields below until the rule is taken off
	runs   int        // runs of scripts
	before string
}

// repeat is a rule that loses the reply to the first request. Before the second request it prolongs
// everything that is held at the name.
func (w *writes) repeat(c redistest.Command) redistest.Fault {
	if c.Name != "EVALSHA" {
		return redistest.Pass
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs++
	if w.runs == 1 {
		return redistest.CloseAfterExec
	}
	w.prolong()
	w.before = w.count()
	return redistest.Pass
}

// renewal is a rule that notes how much the server has written before the first renewal.
func (w *writes) renewal(c redistest.Command) redistest.Fault {
	if c.Name != "EVALSHA" {
		return redistest.Pass
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.runs++; w.runs {
	case 1:
		w.prolong()
		w.before = w.count()
	case 2:
		close(w.seen)
	}
	return redistest.Pass
}

// prolong lets everything that is held at the name live for a minute more.
func (w *writes) prolong() {
	ctx := context.Background()
	for _, key := range w.rdb.Keys(ctx, "*"+w.name+"*").Val() {
		if w.rdb.Type(ctx, key).Val() == "zset" {
			for _, member := range w.rdb.ZRange(ctx, key, 0, -1).Val() {
				w.rdb.ZIncrBy(ctx, key, float64(time.Minute.Milliseconds()), member)
			}
		} else if ttl := w.rdb.PTTL(ctx, key).Val(); ttl > 0 && ttl < time.Minute {
			w.rdb.PExpire(ctx, key, ttl+time.Minute)
		}
	}
}

// count returns how much the server has written.
func (w *writes) count() string {
	info := w.rdb.Info(context.Background(), "persistence").Val()
	_, rest, _ := strings.Cut(info, "rdb_changes_since_last_save:")
	count, _, _ := strings.Cut(rest, "\r\n")
	return count
}

// now returns the count, and fails the test if the server does not tell it.
func (w *writes) now(t *testing.T) string {
	t.Helper()
	n := w.count()
	if n == "" {
		t.Fatal("the server does not say how much it has written")
	}
	return n
}

// In a cluster each master has replicas of its own. While the replica of one shard is silent, locks
// on that shard are refused, and locks on the other shards are granted.
func TestReplicas_InACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t, 3, 1, "--cluster-node-timeout", "60000")
	client := clienttest.OpenClient(t, cluster.Client(t), holdfast.WithReplicas(1))
	byMaster := make(map[*redistest.Proc]string) // a name on each master
	for i := 0; len(byMaster) < 3; i++ {
		name := fmt.Sprint("m", i)
		byMaster[cluster.MasterOf(name)] = name
	}
	work := func(context.Context) error { return nil }
	for _, name := range byMaster {
		// A new replica may not be in sync yet.
		redistest.Eventually(t, 20*time.Second, "granted with a replica", func() error {
			return holdfast.Do(t.Context(), client.Mutex(name), work)
		})
	}
	silent := cluster.MasterOf("m0")
	replicaOf(t, cluster, silent).Freeze()
	for master, name := range byMaster {
		if master != silent {
			redistest.Eventually(t, 10*time.Second, "granted on another shard", func() error {
				return holdfast.Do(t.Context(), client.Mutex(name), work)
			})
			continue
		}
		for _, m := range []holdfast.Locker{client.Mutex(name), client.FairMutex(name), client.RWMutex(name), client.RWMutex(name).RLocker()} {
			world.WantErr(t, holdfast.Do(clienttest.Generous(t), m, work), holdfast.ErrNotReplicated)
			redistest.Eventually(t, 2*time.Second, "the key is gone", func() error {
				if n, err := master.Admin().Exists(t.Context(), name).Result(); n != 0 || err != nil {
					return fmt.Errorf("it is there, %v", err)
				}
				return nil
			})
		}
	}
}

// replicaOf returns the replica of a master.
func replicaOf(t *testing.T, cluster *redistest.ClusterSet, master *redistest.Proc) *redistest.Proc {
	t.Helper()
	_, port, _ := strings.Cut(master.Addr(), ":")
	for _, node := range cluster.Nodes() {
		if strings.Contains(node.Admin().Info(t.Context(), "replication").Val(), "master_port:"+port+"\r\n") {
			return node
		}
	}
	t.Fatalf("%s has no replica", master.Addr())
	return nil
}
