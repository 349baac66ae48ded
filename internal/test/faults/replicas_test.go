// The replicated tier keeps its promises.

package faults

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redises"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
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
