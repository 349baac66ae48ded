// The replicated tier keeps its promises. WAIT reports about the connection that it is sent on, so the WAIT of a grant
// must be sent on the grant's own connection, after a request of its own that has written.

package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/lockertest"
	"github.com/holdfast-go/holdfast/internal/test/redises"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/quorum"
)

// withReplica starts a master and its replica, and waits until they are in sync.
func withReplica(t testing.TB) (master, replica *redistest.Proc) {
	t.Helper()
	master = redistest.Server(t, "--repl-diskless-sync-delay", "0")
	host, port, err := net.SplitHostPort(master.Addr())
	redistest.Must(t, err)
	replica = redistest.Server(t, "--replicaof", host, port)
	redistest.InSync(t, master, 1)
	return master, replica
}

// cut ends replication. It is not enough to freeze the replica: a frozen replica would later find
// what it missed in its socket.
func cut(t testing.TB, replica *redistest.Proc) {
	t.Helper()
	do(t, replica, "replicaof", "127.0.0.1", "1")
}

// A lease is renewed as long as the replica acknowledges, and no longer. The master's word is not enough
// either if WAIT reports the replica's silence in time, before the try ends.
func TestReplicas_ARenewalThatTooFewAcknowledgeDoesNotCount(t *testing.T) {
	t.Parallel()
	master, replica := withReplica(t)
	leases := map[string]*holdfast.Lease{}
	for name, timeout := range map[string]time.Duration{"usual": 3 * time.Second, "quick": 200 * time.Millisecond} {
		rdb := master.Client(t, func(o *redis.Options) { o.ReadTimeout = timeout })
		client := clienttest.OpenClient(t, rdb, holdfast.WithReplicas(1))
		// A replica has half a second to acknowledge a grant, which is little where many tests run.
		redistest.Eventually(t, time.Minute, "granted with the replica", func() (err error) {
			leases[name], err = client.Mutex(name, holdfast.Renewed(keptLease)).Lock(t.Context())
			return err
		})
	}
	renewed(t, leases)
	replica.Freeze()
	for _, l := range leases {
		lostLease(t, l)
	}
}

// acknowledge has that many replicas have all that a process has written by then.
func acknowledge(net *redistest.FaultProxy, replicas int64) {
	net.OnCommand(func(c redistest.Command) redistest.Fault {
		if c.Name == "WAIT" {
			return redistest.ReplyNumber(replicas)
		}
		return redistest.Pass
	})
}

// withoutReplicas has the servers of a process lose their replicas, one after the other. The lock is held without all
// of them but the last of these; without that one it is lost, refused, and not left taken.
func withoutReplicas[L redises.Handle](t *testing.T, w *redises.World, p *redises.Process, lose int, refusal error, locks ...func(context.Context) (L, error)) {
	for _, net := range p.Nets {
		acknowledge(net, 1)
	}
	redises.Release(t, redises.Locked(w, t.Context(), locks[0])) // a quorum begins with all of its servers
	for _, net := range p.Nets[:lose-1] {
		acknowledge(net, 0)
	}
	held := redises.Locked(w, t.Context(), locks[0])
	ctx := held.Context(t.Context())
	time.Sleep(time.Minute) // two leases
	redises.WantLive(t, held, ctx)
	acknowledge(p.Nets[lose-1], 0)
	time.Sleep(time.Minute)
	redises.WantEnded(t, held, ctx, holdfast.ErrLost)
	redistest.Is(t, "Release", held.Release(t.Context()), holdfast.ErrLost)
	for _, lock := range locks {
		redistest.Is(t, "without replicas", redistest.Err(lock(t.Context())), refusal)
		w.WantHeldOn(0)
	}
	acknowledge(p.Nets[lose-1], 1)
	redises.Release(t, redises.Locked(w, t.Context(), locks[0]))
}

// A MultiLock needs the replica of each of its servers.
func TestReplicas_MultiLock(t *testing.T) {
	redises.Play(t, 2, func(t *testing.T, w *redises.World) {
		p := w.Process(holdfast.WithReplicas(1))
		both := holdfast.NewMultiLock(p.Clients[0].Mutex(redises.Name), p.Clients[1].Mutex(redises.Name))
		withoutReplicas(t, w, p, 1, holdfast.ErrNotReplicated, both.Lock, both.TryLock)
	})
}

// In a quorum, a server's grant does not count if no replica has it.
func TestReplicas_Quorum(t *testing.T) {
	redises.Play(t, 3, func(t *testing.T, w *redises.World) {
		p := w.Process(holdfast.WithReplicas(1))
		withoutReplicas(t, w, p, 2, holdfast.ErrNoQuorum, holdfast.NewQuorum(redises.Name, p.Clients).TryLock)
	})
}

// promote kills the master and makes the replica a master.
func promote(t *testing.T, master, replica *redistest.Proc) {
	t.Helper()
	master.Kill()
	do(t, replica, "replicaof", "no", "one")
}

// A master grants a lock and fails before its replica has the grant. The replica grants the lock
// again, with a greater token, by which a resource refuses the first holder's writes.
func TestFailover_WithoutATierTheFenceRefuses(t *testing.T) {
	t.Parallel()
	master, replica := withReplica(t)
	a, b := clienttest.OpenClient(t, master.Client(t)), clienttest.OpenClient(t, replica.Client(t))
	cut(t, replica)
	first := clienttest.Grab(t, a.Mutex("m", holdfast.Renewed(2*time.Minute)))
	promote(t, master, replica)
	if second := clienttest.Grab(t, b.Mutex("m")); second.Token() <= first.Token() {
		t.Errorf("the token went from %d to %d", first.Token(), second.Token())
	}
}

// With the tier, a grant that the replica has not got is refused.
func TestFailover_WithReplicasTheGrantIsRefused(t *testing.T) {
	t.Parallel()
	master, replica := withReplica(t)
	a, b := clienttest.OpenClient(t, master.Client(t), holdfast.WithReplicas(1)), clienttest.OpenClient(t, replica.Client(t))
	cut(t, replica)
	redistest.Is(t, "a grant by the master alone", redistest.Err(a.Mutex("m").Lock(clienttest.Generous(t))), holdfast.ErrNotReplicated)
	promote(t, master, replica)
	clienttest.Grab(t, b.Mutex("m")) // the new master has no replica of its own: B asks for none
}

// A holds a majority of three independent servers. One of the servers fails over to a replica that
// does not know of A's hold. B is refused until A releases.
func TestFailover_WithAQuorumTheSecondIsRefused(t *testing.T) {
	t.Parallel()
	master, replica := withReplica(t)
	others := []*redistest.Proc{redistest.Server(t), redistest.Server(t)}
	quorum := func(third *redistest.Proc) *quorum.Quorum {
		var clients []*holdfast.Client
		for _, s := range append(others, third) {
			clients = append(clients, clienttest.OpenClient(t, s.Client(t)))
		}
		return holdfast.NewQuorum("m", clients, holdfast.Renewed(keptLease))
	}
	a := quorum(master)
	if l, err := a.Lock(t.Context()); err != nil || l.Release(t.Context()) != nil { // writes its markers, on the replica too
		t.Fatal(err)
	}
	redistest.InSync(t, master, 1)
	cut(t, replica)
	held, err := a.Lock(t.Context())
	redistest.Must(t, err)
	promote(t, master, replica)
	b := quorum(replica)
	for range 10 {
		if _, err := b.TryLock(t.Context()); !errors.Is(err, holdfast.ErrBusy) {
			t.Fatalf("B with A: %v", err)
		}
	}
	if err := errors.Join(held.Err(), held.Release(t.Context())); err != nil {
		t.Errorf("one server of three failed, and A: %v", err)
	}
	next, err := b.Lock(t.Context())
	redistest.Must(t, err)
	if next.Token() <= held.Token() {
		t.Errorf("the token went from %d to %d", held.Token(), next.Token())
	}
	redistest.Check(t, next.Release(t.Context()))
}

// Each kind of lock asks for as many replicas as the Client is made to.
func TestReplicas_OfTheClient(t *testing.T) {
	eachKind(t, func(w *world.World, kind lockertest.Kind) {
		p, rival := w.Process(holdfast.WithReplicas(1)), w.Process()
		mine, theirs := contenders(w.T, kind, "myLock", p.Client, rival.Client)
		acknowledge(p.Net, 0)
		_, err := mine.Lock(w.T.Context())
		world.WantErr(w.T, err, holdfast.ErrNotReplicated)
		w.Release(w.Lock(w.T.Context(), theirs))
		acknowledge(p.Net, 1)
		w.Release(w.Lock(w.T.Context(), mine))
	})
}

// wireLog records the commands that passed a proxy, in the order in which they came.
type wireLog struct {
	mu       sync.Mutex
	commands []wireCommand
}

type wireCommand struct {
	redistest.Command
	whole bool // the command and its reply passed
}

// note is a proxy's rule. About one command in ninety is lost, with its connection, before or after
// Redis has executed it. A replica acknowledges the others.
func (w *wireLog) note(c redistest.Command) redistest.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	fault, passes := redistest.Fault(redistest.Pass), true
	if c.Name == "WAIT" {
		fault = redistest.ReplyNumber(1)
	}
	n := len(w.commands)
	switch {
	case isScript(c) && n%89 == 0:
		fault, passes = redistest.CloseAfterExec, false
	case c.Name == "WAIT" && n%97 == 0: // the grant's reply is heard, the reply of its WAIT is not
		fault, passes = redistest.DropBefore, false
	}
	w.commands = append(w.commands, wireCommand{c, passes})
	return fault
}

// waited reports whether, among the first n commands, a WAIT followed that owner's request on the
// same connection, and both got their replies.
func (w *wireLog) waited(owner string, n int) bool {
	asked := make(map[int64]bool) // by connection
	for _, c := range w.commands[:n] {
		switch {
		case !c.whole:
		case isScript(c.Command) && slices.Contains(c.Args, owner):
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
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process(holdfast.WithReplicas(1))
		var log wireLog
		p.Net.OnCommand(log.note)
		const workers = 24 // more than there are connections, so that requests share pipelines
		rounds := redistest.CountOfWork(t, 400)
		granted := make(map[string]int) // owner to how many commands had passed when Lock returned
		clienttest.Each(workers*rounds, workers, func(i int) {
			l, err := p.Mutex(fmt.Sprint("m", i%workers)).Lock(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			log.mu.Lock()
			granted[l.Owner().String()] = len(log.commands)
			log.mu.Unlock()
			w.Release(l)
		})
		log.mu.Lock()
		defer log.mu.Unlock()
		for owner, n := range granted {
			if !log.waited(owner, n) {
				t.Errorf("%s was granted without a WAIT on the connection of its request", owner)
			}
		}
		written := make(map[int64]bool) // connections with a script since their last WAIT
		for _, c := range log.commands {
			if c.Name == "WAIT" && !written[c.Conn] {
				t.Errorf("a WAIT on connection %d, on which nothing was written for it", c.Conn)
			}
			if isScript(c.Command) || c.Name == "WAIT" {
				written[c.Conn] = c.Name != "WAIT"
			}
		}
	})
}

// If a script answers "yours" and has written nothing, the WAIT after it answers at once, whatever
// the replicas have. A server counts from the last write of the connection, and after a break the
// connection is a new one. So a request that finds itself executed writes all the same, even if
// there is enough time to live. A renewal does the same.
func TestInterleaving_WaitAfterARepeatedRequest(t *testing.T) {
	for _, kind := range lockertest.Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Server(t)
			proxy := redistest.Proxy(t, server.Addr())
			client := clienttest.OpenClient(t, proxy.Client(t))
			if kind.Prepare != nil {
				redistest.Must(t, kind.Prepare(clienttest.Generous(t), client, "repeated"))
			}
			m := kind.Locker(client, "repeated", holdfast.Renewed(keptLease))
			clienttest.GiveBack(t, clienttest.Grab(t, m)) // loads the scripts, and agrees about stripes

			// The acquire is executed, its reply is lost, and the client sends it again.
			watch := &writes{rdb: server.Admin(), loses: 1}
			proxy.OnCommand(watch.rule)
			l := clienttest.Grab(t, m)
			watch.written(t, "the repeated acquire", 0)

			// A renewal finds a longer time to live than its own.
			watch = &writes{rdb: server.Admin()}
			proxy.OnCommand(watch.rule)
			watch.written(t, "a renewal", time.Minute)
			proxy.OnCommand(nil)
			clienttest.GiveBack(t, l)
		})
	}
}

// writes looks at what a server has written when a request has run that finds itself done.
type writes struct {
	rdb   *redis.Client
	loses int // so many requests lose their replies before that

	mu     sync.Mutex
	before string // how much the server had written before that request
}

// rule prolongs everything that is held, before the request comes of which the test wants to know.
func (w *writes) rule(c redistest.Command) redistest.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.loses--; {
	case c.Name != "EVALSHA":
		w.loses++
	case w.loses >= 0:
		return redistest.CloseAfterExec
	case w.before == "":
		w.prolong()
		w.before = w.count()
	}
	return redistest.Pass
}

// written fails the test unless the server writes something when that request runs.
func (w *writes) written(t *testing.T, what string, within time.Duration) {
	t.Helper()
	redistest.Eventually(t, within, what+" has written something", func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.before == "" || w.count() == w.before {
			return errors.New("nothing yet")
		}
		return nil
	})
}

// prolong lets everything that is held live for a minute more.
func (w *writes) prolong() {
	ctx := context.Background()
	for _, key := range w.rdb.Keys(ctx, "*").Val() {
		if w.rdb.Type(ctx, key).Val() == "zset" {
			now := time.Now() // other scores are no times
			ends := redis.ZRangeArgs{Key: key, ByScore: true, Start: now.UnixMilli(), Stop: now.Add(time.Hour).UnixMilli()}
			for _, member := range w.rdb.ZRangeArgs(ctx, ends).Val() {
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
