// The replicated tier keeps its promises, on real masters with real replicas.

package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/multilock"
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

// mend lets the replica follow the master again.
func mend(t testing.TB, master, replica *redistest.Proc) {
	t.Helper()
	host, port, _ := net.SplitHostPort(master.Addr())
	do(t, replica, "replicaof", host, port)
	redistest.InSync(t, master, 1)
}

// replicatedGrant locks. A replica has half a second to acknowledge a grant, which is little where many
// tests run, so it tries until it is granted.
func replicatedGrant(t *testing.T, m holdfast.Locker) (l *holdfast.Lease) {
	t.Helper()
	redistest.Eventually(t, time.Minute, "granted with the replica", func() (err error) {
		l, err = m.Lock(t.Context())
		return err
	})
	return l
}

// freeOn waits until "m" is free on all masters.
func freeOn(t *testing.T, masters ...*redistest.Proc) {
	t.Helper()
	redistest.Eventually(t, time.Minute, "what was taken is free", func() error {
		for i, m := range masters {
			if n, err := m.Admin().Exists(t.Context(), "m").Result(); n != 0 || err != nil {
				return fmt.Errorf("held on server %d, %v", i, err)
			}
		}
		return nil
	})
}

// A replica has what is granted. Without it nothing is granted, and what was refused leaves nothing.
func TestReplicas_Granted(t *testing.T) {
	t.Parallel()
	master, replica := withReplica(t)
	client := clienttest.OpenClient(t, master.Client(t), holdfast.WithReplicas(1))
	l := replicatedGrant(t, client.Mutex("m"))
	if n, err := replica.Admin().Exists(t.Context(), "m").Result(); n != 1 || err != nil {
		t.Errorf("the replica has it %d times when Lock returns, %v", n, err)
	}
	clienttest.GiveBack(t, l)
	cut(t, replica)
	for _, lock := range []func(context.Context) (*holdfast.Lease, error){client.Mutex("m").Lock, client.Mutex("m").TryLock} {
		if l, err := lock(t.Context()); !errors.Is(err, holdfast.ErrNotReplicated) || l != nil {
			t.Fatalf("without the replica: %v, %v", l, err)
		}
		freeOn(t, master)
	}
	mend(t, master, replica)
	clienttest.GiveBack(t, replicatedGrant(t, client.Mutex("m")))
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
		leases[name] = replicatedGrant(t, client.Mutex(name, holdfast.Renewed(keptLease)))
	}
	renewed(t, leases)
	replica.Freeze()
	for _, l := range leases {
		lostLease(t, l)
	}
}

// fenced is a resource that refuses a write with a token less than the greatest token it has seen.
type fenced struct {
	t       *testing.T
	highest int64
}

func (f *fenced) accepts(token int64) bool {
	f.highest = max(f.highest, token)
	return token == f.highest
}

// write takes the lock and writes under it. It does not release the lock: its work goes on.
func (f *fenced) write(client *holdfast.Client) (token int64, err error) {
	ctx := redistest.Within(f.t, time.Minute)
	l, err := client.Mutex("m", holdfast.Renewed(2*time.Minute)).Lock(ctx)
	if err != nil {
		return 0, err
	}
	if !f.accepts(l.Token()) {
		f.t.Errorf("token %d is refused after %d", l.Token(), f.highest)
	}
	return l.Token(), nil
}

// promote kills the master and makes the replica a master.
func promote(t *testing.T, master, replica *redistest.Proc) {
	t.Helper()
	master.Kill()
	do(t, replica, "replicaof", "no", "one")
}

// A master grants a lock and fails before its replica has the grant. The replica grants the lock
// again, and the resource refuses the first holder's writes.
func TestFailover_WithoutATierTheFenceRefuses(t *testing.T) {
	t.Parallel()
	master, replica := withReplica(t)
	a, b := clienttest.OpenClient(t, master.Client(t)), clienttest.OpenClient(t, replica.Client(t))
	cut(t, replica)
	resource := &fenced{t: t}
	tokenA, errA := resource.write(a)
	promote(t, master, replica)
	tokenB, errB := resource.write(b)
	redistest.Must(t, errors.Join(errA, errB))
	if tokenB <= tokenA || resource.accepts(tokenA) {
		t.Errorf("the token went from %d to %d", tokenA, tokenB)
	}
}

// With the tier, a grant that the replica has not got is refused.
func TestFailover_WithReplicasTheGrantIsRefused(t *testing.T) {
	t.Parallel()
	master, replica := withReplica(t)
	a, b := clienttest.OpenClient(t, master.Client(t), holdfast.WithReplicas(1)), clienttest.OpenClient(t, replica.Client(t))
	cut(t, replica)
	resource := &fenced{t: t}
	if _, err := resource.write(a); !errors.Is(err, holdfast.ErrNotReplicated) {
		t.Fatalf("granted by the master alone: %v", err)
	}
	promote(t, master, replica)
	if _, err := resource.write(b); err != nil { // the new master has no replica of its own: B asks for none
		t.Errorf("nobody holds it, and yet: %v", err)
	}
}

// mirrored starts n masters, each with a replica, and returns a Client of each.
func mirrored(t *testing.T, n int) (masters, replicas []*redistest.Proc, clients []*holdfast.Client) {
	t.Helper()
	for range n {
		master, replica := withReplica(t)
		masters, replicas = append(masters, master), append(replicas, replica)
		clients = append(clients, clienttest.OpenClient(t, master.Client(t), holdfast.WithReplicas(1)))
	}
	return masters, replicas, clients
}

// A MultiLock on two masters is not granted if one of them has lost its replica. A hold on both is
// lost when one of them loses its replica.
func TestReplicas_MultiLock(t *testing.T) {
	t.Parallel()
	masters, replicas, clients := mirrored(t, 2)
	both := holdfast.NewMultiLock(clients[0].Mutex("m", holdfast.Renewed(keptLease)), clients[1].Mutex("m", holdfast.Renewed(keptLease)))
	var held *multilock.Lease
	redistest.Eventually(t, time.Minute, "granted with the replicas", func() (err error) {
		held, err = both.Lock(t.Context())
		return err
	})
	cut(t, replicas[1])
	lostWhole(t, held)
	freeOn(t, masters...)
	for _, lock := range []func(context.Context) (*multilock.Lease, error){both.Lock, both.TryLock} {
		redistest.Is(t, "without a replica", redistest.Err(lock(t.Context())), holdfast.ErrNotReplicated)
		freeOn(t, masters...)
	}
}

// lostWhole waits until a lease of several locks has ended, and fails the test unless it was lost.
func lostWhole(t *testing.T, l interface {
	Done() <-chan struct{}
	Err() error
	Release(context.Context) error
}) {
	t.Helper()
	select {
	case <-l.Done():
	case <-time.After(time.Minute):
		t.Fatal("held without the replicas")
	}
	redistest.Is(t, "ended with", l.Err(), holdfast.ErrLost)
	redistest.Is(t, "Release", l.Release(t.Context()), holdfast.ErrLost)
}

// In a quorum, a server's grant does not count if no replica has it.
func TestReplicas_Quorum(t *testing.T) {
	t.Parallel()
	masters, replicas, clients := mirrored(t, 3)
	q := holdfast.NewQuorum("m", clients, holdfast.Renewed(keptLease))
	grant := func() (l *quorum.Lease) {
		t.Helper()
		redistest.Eventually(t, time.Minute, "granted", func() (err error) {
			l, err = q.TryLock(t.Context())
			return err
		})
		return l
	}
	pair := func() {
		t.Helper()
		redistest.Check(t, grant().Release(t.Context()))
		freeOn(t, masters...)
	}
	pair()
	cut(t, replicas[0])
	pair()
	held := grant()
	cut(t, replicas[1])
	lostWhole(t, held)
	freeOn(t, masters...)
	redistest.Is(t, "TryLock", redistest.Err(q.TryLock(t.Context())), holdfast.ErrNoQuorum)
	freeOn(t, masters...)
	mend(t, masters[0], replicas[0])
	pair()
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
