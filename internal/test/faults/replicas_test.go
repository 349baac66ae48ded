// The replicated tier keeps its promises on a real master with a real replica.

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
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/multilock"
)

// withReplica starts a master and its replica, and waits until they are in sync.
func withReplica(t testing.TB) (master, replica *redistest.Proc) {
	t.Helper()
	master = redistest.Server(t, "--repl-diskless-sync-delay", "0")
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	replica = redistest.Server(t, "--replicaof", host, port)
	redistest.InSync(t, master, 1)
	return master, replica
}

// cut ends replication. It is not enough to freeze the replica: a frozen replica would later find
// what it missed in its socket.
func cut(t testing.TB, replica *redistest.Proc) {
	t.Helper()
	if err := replica.Admin().Do(t.Context(), "replicaof", "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
}

// mend lets the replica follow the master again.
func mend(t testing.TB, master, replica *redistest.Proc) {
	t.Helper()
	host, port, err := net.SplitHostPort(master.Addr())
	if err == nil {
		err = replica.Admin().Do(t.Context(), "replicaof", host, port).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	redistest.InSync(t, master, 1)
}

func TestReplicas_GrantedAndRenewedWithAReplica(t *testing.T) {
	t.Parallel()
	redistest.Undisturbed(t, 500*time.Millisecond, func(t testing.TB) {
		master, replica := withReplica(t)
		client := holdfast.New(master.Client(t), holdfast.WithReplicas(1))
		defer client.Close()
		var l *holdfast.Lease
		// The replica has half a second, which is little where many tests run.
		redistest.Eventually(t, 10*time.Second, "granted with the replica", func() (err error) {
			l, err = client.Mutex("m", holdfast.Renewed(2*time.Second)).Lock(t.Context())
			return err
		})
		if n, err := replica.Admin().Exists(t.Context(), "m").Result(); n != 1 || err != nil {
			t.Errorf("the replica has it %d times when Lock returns, %v", n, err)
		}
		select {
		case <-l.Done():
			t.Fatalf("not kept: %v", l.Err())
		case <-time.After(5 * time.Second):
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestReplicas_NotReplicated(t *testing.T) {
	t.Parallel()
	master, replica := withReplica(t)
	client := holdfast.New(master.Client(t), holdfast.WithReplicas(1))
	defer client.Close()
	ctx := t.Context()
	// The Client is granted a lock with the replica before the cut, and goes on without the replica
	// afterwards. The replica has half a second to acknowledge, which is little where many tests
	// run.
	redistest.Eventually(t, 10*time.Second, "granted with the replica", func() error {
		return holdfast.Do(ctx, client.Mutex("before"), func(context.Context) error { return nil })
	})
	cut(t, replica)
	for what, lock := range map[string]func(context.Context) (*holdfast.Lease, error){
		"Lock":    client.Mutex("m").Lock,
		"TryLock": client.Mutex("m").TryLock,
	} {
		if l, err := lock(ctx); !errors.Is(err, holdfast.ErrNotReplicated) || l != nil {
			t.Fatalf("%s: %v, %v", what, l, err)
		}
		redistest.Eventually(t, time.Second, "the key is gone", func() error {
			n, err := master.Admin().Exists(ctx, "m").Result()
			if err == nil && n != 0 {
				err = errors.New("it is there")
			}
			return err
		})
	}
	mend(t, master, replica)
	if err := holdfast.Do(ctx, client.Mutex("m"), func(context.Context) error { return nil }); err != nil {
		t.Errorf("with the replica back: %v", err)
	}
}

func TestReplicas_ARenewalThatIsNotReplicatedDoesNotCount(t *testing.T) {
	t.Parallel()
	master, replica := withReplica(t)
	client := holdfast.New(master.Client(t), holdfast.WithReplicas(1))
	defer client.Close()
	const length = time.Second
	var l *holdfast.Lease
	// The replica has half a second, which is little where many tests run.
	redistest.Eventually(t, 10*time.Second, "granted with the replica", func() (err error) {
		l, err = client.Mutex("m", holdfast.Renewed(length)).Lock(t.Context())
		return err
	})
	p := redistest.FeelPulse(t)
	replica.Freeze()
	deadline := time.Now().Add(length)
	select {
	case <-l.Done():
	case <-time.After(10 * length):
		t.Fatal("held on the word of the master alone")
	}
	if !errors.Is(l.Err(), holdfast.ErrLost) {
		t.Errorf("ended with %v", l.Err())
	}
	p.Within(t, "the telling, after its deadline,", deadline, 500*time.Millisecond)
}

// A master grants a lock and fails before its replica has the grant. The replica grants the lock
// again, and the resource refuses the first holder's writes.
func TestFailover_WithoutATierTheFenceRefuses(t *testing.T) {
	t.Parallel()
	a, b, resource := failover(t)
	tokenA, errA := resource.write(a)
	if errA != nil {
		t.Fatal(errA)
	}
	master, replica := resource.master, resource.replica
	promote(t, master, replica)
	tokenB, errB := resource.write(b)
	if errB != nil {
		t.Fatalf("the lock was lost with the master, and yet: %v", errB)
	}
	if tokenB <= tokenA {
		t.Errorf("the token went from %d to %d", tokenA, tokenB)
	}
	if resource.accepts(tokenA) {
		t.Error("the resource takes writes of a holder that has been overtaken")
	}
}

func TestFailover_WithReplicasTheGrantIsRefused(t *testing.T) {
	t.Parallel()
	a, _, resource := failover(t, holdfast.WithReplicas(1))
	if _, err := resource.write(a); !errors.Is(err, holdfast.ErrNotReplicated) {
		t.Fatalf("granted by the master alone: %v", err)
	}
	promote(t, resource.master, resource.replica)
	// The new master has no replica of its own: B asks for none.
	b := holdfast.New(resource.replica.Client(t))
	defer b.Close()
	if _, err := resource.write(b); err != nil {
		t.Errorf("nobody holds it, and yet: %v", err)
	}
}

// A holds a majority of three independent servers. One of the servers fails over to a replica that
// does not know of A's hold. B is refused until A releases.
func TestFailover_WithAQuorumTheSecondIsRefused(t *testing.T) {
	t.Parallel()
	master, replica := withReplica(t)
	others := []*redistest.Proc{redistest.Server(t), redistest.Server(t)}
	a := quorumOf(t, append(others, master))
	if l, err := a.Lock(t.Context()); err != nil { // writes its markers, on the replica too
		t.Fatal(err)
	} else if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	redistest.InSync(t, master, 1)
	cut(t, replica)
	held, err := a.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	promote(t, master, replica)
	b := quorumOf(t, append(others, replica))
	for range 10 {
		if _, err := b.TryLock(t.Context()); !errors.Is(err, holdfast.ErrBusy) {
			t.Fatalf("B with A: %v", err)
		}
	}
	if err := held.Err(); err != nil {
		t.Errorf("one server of three failed, and A: %v", err)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Errorf("A releases: %v", err)
	}
	next, err := b.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if next.Token() <= held.Token() {
		t.Errorf("the token went from %d to %d", held.Token(), next.Token())
	}
	if err := next.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// quorumOf returns the lock "m" on these servers, as one process uses it.
func quorumOf(t testing.TB, servers []*redistest.Proc, options ...holdfast.Option) *multilock.Quorum {
	t.Helper()
	return holdfast.NewQuorum("m", clientsOf(t, servers, options...), holdfast.Renewed(3*time.Second))
}

func clientsOf(t testing.TB, servers []*redistest.Proc, options ...holdfast.Option) []*holdfast.Client {
	t.Helper()
	var clients []*holdfast.Client
	for _, s := range servers {
		c := holdfast.New(s.Client(t), options...)
		t.Cleanup(func() { _ = c.Close() })
		clients = append(clients, c)
	}
	return clients
}

// mirrored starts n masters, each with a replica.
func mirrored(t testing.TB, n int) (masters, replicas []*redistest.Proc) {
	t.Helper()
	for range n {
		master, replica := withReplica(t)
		masters, replicas = append(masters, master), append(replicas, replica)
	}
	return masters, replicas
}

// freeOn fails the test unless "m" is free on all masters within a second, plus the time for which
// this process was starved.
func freeOn(t testing.TB, masters []*redistest.Proc) {
	t.Helper()
	p, asked := redistest.FeelPulse(t), time.Now()
	defer func() { p.Within(t, "the end of what was taken", asked, time.Second) }()
	redistest.Eventually(t, 30*time.Second, "what was taken is free", func() error { return heldOn(t, masters) })
}

// heldOn returns an error if "m" is held on one of the masters.
func heldOn(t testing.TB, masters []*redistest.Proc) error {
	for i, m := range masters {
		if n, err := m.Admin().Exists(t.Context(), "m").Result(); n != 0 || err != nil {
			return fmt.Errorf("held on server %d, %v", i, err)
		}
	}
	return nil
}

// A MultiLock on two masters is not granted if one of them has lost its replica. A hold on both is
// lost when one of them loses its replica.
func TestReplicas_MultiLock(t *testing.T) {
	t.Parallel()
	redistest.Undisturbed(t, 500*time.Millisecond, func(t testing.TB) {
		masters, replicas := mirrored(t, 2)
		clients := clientsOf(t, masters, holdfast.WithReplicas(1))
		option := holdfast.Renewed(2 * time.Second)
		both := holdfast.NewMultiLock(clients[0].Mutex("m", option), clients[1].Mutex("m", option))
		held, err := both.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		cut(t, replicas[1])
		select {
		case <-held.Done():
		case <-time.After(10 * time.Second):
			t.Fatal("held on the word of one master alone")
		}
		if !errors.Is(held.Err(), holdfast.ErrLost) {
			t.Errorf("ended with %v", held.Err())
		}
		if err := held.Release(t.Context()); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("Release: %v", err)
		}
		// Renewals have kept the key on the second master, though too few replicas acknowledged
		// them.
		redistest.Eventually(t, 30*time.Second, "what was lost is over", func() error { return heldOn(t, masters) })
		for what, lock := range map[string]func(context.Context) (*multilock.Lease, error){"Lock": both.Lock, "TryLock": both.TryLock} {
			if _, err := lock(t.Context()); !errors.Is(err, holdfast.ErrNotReplicated) {
				t.Errorf("%s: %v", what, err)
			}
			freeOn(t, masters)
		}
	})
}

// In a quorum, a server's grant does not count if no replica has it.
func TestReplicas_Quorum(t *testing.T) {
	t.Parallel()
	redistest.Undisturbed(t, 500*time.Millisecond, func(t testing.TB) {
		masters, replicas := mirrored(t, 3)
		q := quorumOf(t, masters, holdfast.WithReplicas(1))
		granted := func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			l, err := q.Lock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
			freeOn(t, masters)
		}
		granted()
		cut(t, replicas[0])
		granted()
		held, err := q.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		cut(t, replicas[1])
		select {
		case <-held.Done():
		case <-time.After(10 * time.Second):
			t.Fatal("held though one server of three has a replica")
		}
		if !errors.Is(held.Err(), holdfast.ErrLost) {
			t.Errorf("ended with %v", held.Err())
		}
		freeOn(t, masters)
		if _, err := q.TryLock(t.Context()); !errors.Is(err, holdfast.ErrNoQuorum) {
			t.Errorf("TryLock: %v", err)
		}
		freeOn(t, masters)
		mend(t, masters[0], replicas[0])
		granted()
	})
}

// fenced is a resource that refuses a write with a token less than the greatest token it has seen.
type fenced struct {
	t               *testing.T
	master, replica *redistest.Proc
	highest         int64
}

func (f *fenced) accepts(token int64) bool {
	if token < f.highest {
		return false
	}
	f.highest = token
	return true
}

// write takes the lock and writes under it. It does not release the lock: its work goes on.
func (f *fenced) write(client *holdfast.Client) (token int64, err error) {
	ctx, cancel := context.WithTimeout(f.t.Context(), 10*time.Second)
	defer cancel()
	l, err := client.Mutex("m").Lock(ctx)
	if err != nil {
		return 0, err
	}
	if !f.accepts(l.Token()) {
		f.t.Errorf("token %d is refused after %d", l.Token(), f.highest)
	}
	return l.Token(), nil
}

// failover returns a Client of the master, a Client of the replica, and the resource that both
// write to. Replication is cut.
func failover(t *testing.T, options ...holdfast.Option) (a, b *holdfast.Client, resource *fenced) {
	master, replica := withReplica(t)
	a, b = holdfast.New(master.Client(t), options...), holdfast.New(replica.Client(t), options...)
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	cut(t, replica)
	return a, b, &fenced{t: t, master: master, replica: replica}
}

// promote kills the master and makes the replica a master.
func promote(t *testing.T, master, replica *redistest.Proc) {
	t.Helper()
	master.Kill()
	redistest.Eventually(t, 10*time.Second, "the replica is promoted", func() error {
		return replica.Admin().Do(t.Context(), "replicaof", "no", "one").Err()
	})
}

// The master's word alone is not enough either if WAIT reports the replicas' silence in time,
// before the try ends.
func TestReplicas_ARenewalThatTooFewAcknowledgeDoesNotCount(t *testing.T) {
	t.Parallel()
	master, replica := withReplica(t)
	quick := master.Client(t, func(o *redis.Options) { o.ReadTimeout = 200 * time.Millisecond })
	client := holdfast.New(quick, holdfast.WithReplicas(1))
	defer client.Close()
	const length = 2 * time.Second
	var l *holdfast.Lease
	// The replica has a tenth of a second, which is little where many tests run.
	redistest.Eventually(t, 10*time.Second, "granted with the replica", func() (err error) {
		l, err = client.Mutex("m", holdfast.Renewed(length)).Lock(t.Context())
		return err
	})
	p := redistest.FeelPulse(t)
	replica.Freeze()
	deadline := l.Deadline().Add(length / 2) // at most one renewal was under way
	select {
	case <-l.Done():
	case <-time.After(10 * length):
		t.Fatal("held on the word of the master alone")
	}
	if !errors.Is(l.Err(), holdfast.ErrLost) {
		t.Errorf("ended with %v", l.Err())
	}
	p.Within(t, "the telling, after the last moment,", deadline, 0)
}
