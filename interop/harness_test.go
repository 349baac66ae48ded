// This file has what the tests start: a server, a Java process on it, and clients of both
// languages.

package interop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// patience bounds everything that must happen. Only a defect exceeds it.
const patience = time.Minute

// versions returns the versions of Redisson to test: the versions that HOLDFAST_REDISSON names, or
// all versions at full counts, or otherwise the newest.
func versions() []string {
	switch {
	case os.Getenv("HOLDFAST_REDISSON") != "":
		return strings.Split(os.Getenv("HOLDFAST_REDISSON"), ",")
	case long():
		return []string{Newest, Last3, Oldest}
	default:
		return []string{Newest}
	}
}

// eachVersion runs a test with every tested version from since on.
func eachVersion(t *testing.T, since string, test func(t *testing.T, version string)) {
	for _, version := range versions() {
		if older(version, since) {
			continue
		}
		t.Run("redisson-"+version, func(t *testing.T) { test(t, version) })
	}
}

// everywhere runs a test with every tested version from since on. It runs the test on one server
// and, at full counts, also on a cluster with sharded channels.
func everywhere(t *testing.T, since string, test func(t *testing.T, w *world)) {
	onServers(t, since, long(), test)
}

// onServers is everywhere, for a test that runs on a cluster at other counts too.
func onServers(t *testing.T, since string, cluster bool, test func(t *testing.T, w *world)) {
	eachVersion(t, since, func(t *testing.T, version string) {
		t.Run("single", func(t *testing.T) { test(t, newWorld(t, version, "single")) })
		if cluster && !older(version, sharding) {
			t.Run("cluster", func(t *testing.T) { test(t, newWorld(t, version, "cluster")) })
		}
	})
}

// sharding is the first version that always detects the sharded channels of a cluster.
const sharding = "3.28"

// long reports whether the counts are full.
func long() bool { return os.Getenv("HOLDFAST_LONG") == "1" }

// prompt returns how long what should happen within that time may take: on a machine that does other
// things as well, anything less than patience says nothing. The long run judges the times.
func prompt(within time.Duration) time.Duration {
	if long() {
		return within
	}
	return patience
}

// older compares versions by their first two numbers.
func older(a, b string) bool {
	numbers := func(version string) []int {
		var all []int
		for _, part := range strings.Split(version, ".")[:2] {
			n, _ := strconv.Atoi(part)
			all = append(all, n)
		}
		return all
	}
	return slices.Compare(numbers(a), numbers(b)) < 0
}

// world is a server that both languages use. Its methods fail the test, so only the test's own
// goroutine may call them.
type world struct {
	t        *testing.T
	ctx      context.Context
	version  string
	topology string // single or cluster
	addrs    []string
	rdb      redis.UniversalClient // the test's own client
	dial     func() redis.UniversalClient
	java     *Java
}

// newWorld starts a server, or a cluster of three masters, and finds the Java process that all tests of a version share.
// The cluster has sharded channels if the server supports them.
func newWorld(t *testing.T, version, topology string) *world {
	t.Helper()
	redistest.Needs(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, version: version, topology: topology, java: machines.of(t, version)}
	if topology == "cluster" {
		cluster := redistest.Cluster(t, 3, 0)
		w.addrs, w.rdb = cluster.Addrs(), cluster.Client(t)
		w.dial = func() redis.UniversalClient { return cluster.Client(t) }
	} else {
		server := redistest.Server(t)
		w.addrs, w.rdb = []string{server.Addr()}, server.Admin()
		w.dial = func() redis.UniversalClient { return server.Client(t) }
	}
	return w
}

// ownJava gives the world a Java process of its own, for a test that kills the process.
func (w *world) ownJava() {
	w.t.Helper()
	java, err := startJava(w.t, w.version)
	redistest.Must(w.t, err)
	w.t.Cleanup(java.Kill)
	w.java = java
}

// startJava starts a Java process. Nobody reads what it writes to stderr.
func startJava(t *testing.T, version string) (*Java, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // Maven downloads
	defer cancel()
	java, err := Start(ctx, version, nil)
	if errors.Is(err, ErrNoJava) {
		redistest.Missing(t, err.Error())
	}
	return java, err
}

// machines is package-level because a Java process takes a second to start, and longer until it
// runs fast. The tests share the processes, and TestMain ends them.
var machines javas

// javas has the shared Java processes, by version.
type javas struct {
	mu      sync.Mutex
	running map[string]*Java
	clients int
}

func (j *javas) of(t *testing.T, version string) *Java {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.running[version] == nil {
		java, err := startJava(t, version)
		redistest.Must(t, err)
		if j.running == nil {
			j.running = make(map[string]*Java)
		}
		j.running[version] = java
	}
	return j.running[version]
}

// unique returns a name for a client that no other test uses.
func (j *javas) unique(name string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.clients++
	return fmt.Sprintf("%s-%d", name, j.clients)
}

func (j *javas) kill() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, java := range j.running {
		java.Kill()
	}
}

// redisson connects a Redisson client. The client is closed when the test ends.
func (w *world) redisson(name string, options ...string) *Redisson {
	w.t.Helper()
	words := append([]string{w.topology, strings.Join(w.addrs, ",")}, options...)
	r, err := w.java.Connect(w.ctx, machines.unique(name), words...)
	redistest.Must(w.t, err)
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := r.Close(ctx); err != nil && !errors.Is(err, ErrGone) {
			w.t.Errorf("close Redisson: %v", err)
		}
	})
	return r
}

// holdfast makes a Client of Holdfast on a Redis client of its own.
func (w *world) holdfast(options ...holdfast.Option) *holdfast.Client {
	client := holdfast.New(w.dial(), options...)
	w.t.Cleanup(func() { client.Close() })
	return client
}

// do makes a Java thread do something that must succeed, and returns its value.
func (w *world) do(th Thread, command string, args ...any) string {
	w.t.Helper()
	return w.result(th.Go(command, args...))
}

// result waits for a Java call that must succeed.
func (w *world) result(call *Call) string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	value, err := call.Wait(ctx)
	redistest.Must(w.t, err)
	return value
}

// expect makes a Java thread do something that must return want.
func (w *world) expect(want string, th Thread, command string, args ...any) {
	w.t.Helper()
	if got := w.do(th, command, args...); got != want {
		w.t.Errorf("Java: %s %v: %q, want %q", command, args, got, want)
	}
}

// refused makes a Java thread do something that must throw an exception of that class.
func (w *world) refused(class string, th Thread, command string, args ...any) {
	w.t.Helper()
	value, err := th.Do(w.ctx, command, args...)
	var thrown *Exception
	if !errors.As(err, &thrown) || thrown.Class != class {
		w.t.Errorf("Java: %s %v: %q, %v; want %s", command, args, value, err, class)
	}
}

// still fails the test if a call has ended that must not end yet.
func still[T any](t *testing.T, what string, done <-chan T) {
	t.Helper()
	select {
	case <-done:
		t.Errorf("%s has ended", what)
	default:
	}
}

// ended waits until a channel is closed or gives a value, and returns that value.
func ended[T any](t *testing.T, what string, within time.Duration, done <-chan T) T {
	t.Helper()
	select {
	case got := <-done:
		return got
	case <-time.After(within):
		t.Fatalf("%s: not within %v", what, within)
		panic("unreachable")
	}
}

// nodes returns a client of each master.
func (w *world) nodes() []*redis.Client {
	cluster, ok := w.rdb.(*redis.ClusterClient)
	if !ok {
		return []*redis.Client{w.rdb.(*redis.Client)}
	}
	var mu sync.Mutex
	var all []*redis.Client
	err := cluster.ForEachMaster(w.ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, node)
		return nil
	})
	redistest.Must(w.t, err)
	return all
}

// scripts are the commands that run a script: by its hash or, in Redisson before 3.46, by its whole
// text.
var scripts = []string{"evalsha", "eval"}

// commands returns how often the servers have run commands. Failed commands do not count, because a
// script that a server does not have yet is sent again.
func (w *world) commands(names []string) int {
	w.t.Helper()
	total := 0
	for _, node := range w.nodes() {
		info, err := node.Info(w.ctx, "commandstats").Result()
		redistest.Must(w.t, err)
		for _, name := range names {
			_, stats, _ := strings.Cut(info, "cmdstat_"+name+":")
			stats, _, _ = strings.Cut(stats, "\r\n")
			for field := range strings.SplitSeq(stats, ",") {
				what, count, _ := strings.Cut(field, "=")
				n, _ := strconv.Atoi(count)
				switch what {
				case "calls":
					total += n
				case "failed_calls":
					total -= n
				}
			}
		}
	}
	return total
}

// asked returns a function that waits until the commands have run that many more times. A waiter
// that has asked, subscribed and asked again now sleeps.
func (w *world) asked(names []string, times int) (wait func()) {
	w.t.Helper()
	before := w.commands(names)
	return func() {
		w.t.Helper()
		redistest.Eventually(w.t, patience, "the waiters sleep", func() error {
			if now := w.commands(names); now < before+times {
				return fmt.Errorf("they have asked %d times, of %d", now-before, times)
			}
			return nil
		})
	}
}

// parked waits a moment more. By the server's count a thread has asked, but only the thread itself
// knows when it has its answer and sleeps.
func (w *world) parked() { time.Sleep(20 * time.Millisecond) }

// hash returns what is in a hash.
func (w *world) hash(key string) map[string]string {
	w.t.Helper()
	fields, err := w.rdb.HGetAll(w.ctx, key).Result()
	redistest.Must(w.t, err)
	return fields
}

// ttl returns a key's time to live.
func (w *world) ttl(key string) time.Duration {
	w.t.Helper()
	left, err := w.rdb.PTTL(w.ctx, key).Result()
	redistest.Must(w.t, err)
	return left
}

// sleeps makes a thread of Java ask for what it does not get, and returns once it has asked twice: then it sleeps.
func (w *world) sleeps(th Thread, command string, args ...any) *Call {
	w.t.Helper()
	sleeps := w.asked(scripts, 2)
	call := th.Go(command, args...)
	sleeps()
	return call
}

// locking is a method of a Locker.
type locking func(ctx context.Context) (*holdfast.Lease, error)

// grant takes a lock, which must come free.
func (w *world) grant(ctx context.Context, lock locking) *holdfast.Lease {
	w.t.Helper()
	l, err := lock(ctx)
	redistest.Must(w.t, err)
	return l
}

// granted is what came of a wait on a goroutine of its own.
type granted struct {
	*holdfast.Lease
	err error
}

// asks takes a lock on a goroutine of its own, and returns once that has asked twice: then it sleeps.
func (w *world) asks(lock locking) <-chan granted {
	w.t.Helper()
	sleeps, c := w.asked(scripts, 2), make(chan granted, 1)
	go func() {
		l, err := lock(w.ctx)
		c <- granted{l, err}
	}()
	sleeps()
	return c
}

// granted waits for the grant.
func (w *world) granted(what string, c <-chan granted) *holdfast.Lease {
	w.t.Helper()
	g := ended(w.t, what, patience, c)
	redistest.Must(w.t, g.err)
	return g.Lease
}

// notIn fails the test unless a try is refused because the lock is held.
func (w *world) notIn(what string, try locking) {
	w.t.Helper()
	_, err := try(w.ctx)
	redistest.Is(w.t, what, err, holdfast.ErrBusy)
}

// soon fails the test if what should happen within that time took longer.
func (w *world) soon(what string, took, within time.Duration) {
	w.t.Helper()
	if took > prompt(within) {
		w.t.Errorf("%s %v, want %v", what, took, within)
	}
}
