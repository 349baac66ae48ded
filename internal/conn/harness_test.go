// These tests share scripts that keep the contract of Script, Managers on embedded and on real
// servers, and a log of the commands that pass a proxy.

package conn_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// count counts its executions at KEYS[1]. It replies {1, now, executions}.
var count = conn.NewScript("count", `
return {1, now, redis.call('incr', KEYS[1])}`)

// exists replies {whether the key is there, now}.
var exists = conn.NewScript("exists", `
return {redis.call('exists', KEYS[1]), now}`, conn.Always)

// late always says that the request came too late.
var late = conn.NewScript("late", `
return {-1, now}`, conn.Always)

// newCount returns a call of count on key.
func newCount(key string) *conn.Call { return &conn.Call{Script: count, Keys: []string{key}} }

// counts returns calls of count on these keys.
func counts(keys ...string) []*conn.Call {
	calls := make([]*conn.Call, len(keys))
	for i, key := range keys {
		calls[i] = newCount(key)
	}
	return calls
}

// newManager returns a Manager on rdb, whose owner hears of the events. The Manager is closed when t ends.
func newManager(t testing.TB, rdb redis.UniversalClient, events ...conn.Events) *conn.Manager {
	t.Helper()
	m, err := conn.New(rdb, slog.New(slog.DiscardHandler), append(events, conn.Events{})[0])
	redistest.Must(t, err)
	t.Cleanup(m.Close)
	return m
}

// bubble is a Manager behind a proxy in front of an embedded server, in virtual time. Its Dialer and its log
// can be looked at.
type bubble struct {
	*conn.Manager
	*dialler
	*lines
	server *redistest.MiniServer
	proxy  *redistest.FaultProxy
}

// inBubble runs test in virtual time. No sleep in the test takes real time, and every wait takes
// exactly as long as the clock says.
func inBubble(t *testing.T, test func(t *testing.T, b *bubble), opts ...func(*redis.Options)) {
	t.Helper()
	redistest.Bubble(t, func(t *testing.T) {
		b := &bubble{dialler: new(dialler), lines: new(lines), server: redistest.Mini(t)}
		b.proxy = b.server.Proxy()
		var err error
		b.Manager, err = conn.New(b.proxy.Client(t, append([]func(*redis.Options){b.dialBy}, opts...)...), slog.New(slog.NewTextHandler(b, nil)), conn.Events{})
		redistest.Must(t, err)
		t.Cleanup(func() { b.Close() })
		test(t, b)
	})
}

// onCluster gives the bubble a Manager that takes the server for a cluster. doubtful, if there is one, hears which keys
// are doubted.
func (b *bubble) onCluster(t *testing.T, doubtful ...func(conn.Doubt)) {
	t.Helper()
	var events conn.Events
	if len(doubtful) > 0 {
		events.Doubtful = doubtful[0]
	}
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{"127.0.0.1:6379"}, Dialer: b.proxy.Dial, ReadTimeout: 10 * time.Second,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	b.Manager = newManager(t, rdb, events)
}

// lines are what a log or go-redis has written.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(line []byte) (int, error) {
	l.Printf(context.Background(), "%s", line)
	return len(line), nil
}

// Printf is that of a logger for go-redis.
func (l *lines) Printf(_ context.Context, format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, fmt.Sprintf(format, v...))
}

func (l *lines) String() string { return strings.Join(l.said(""), " ") }

// said returns the lines that have text in them, and forgets all.
func (l *lines) said(text string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return slices.DeleteFunc(all, func(line string) bool { return !strings.Contains(line, text) })
}

// executions returns how often count has run on key.
func (b *bubble) executions(t *testing.T, key string) int {
	t.Helper()
	n, err := b.server.Client().Get(t.Context(), key).Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	return n
}

// warm connects, so that the Manager knows the server's clock and the server knows the script.
func (b *bubble) warm(t *testing.T) {
	t.Helper()
	mustRun(t, b.Manager, newCount("warm"))
}

// load makes the server know the scripts by their hashes.
func (b *bubble) load(t *testing.T, scripts ...*conn.Script) {
	t.Helper()
	for _, s := range scripts {
		redistest.Must(t, b.server.Client().ScriptLoad(t.Context(), s.Source()).Err())
	}
}

// loading is what a server answers that is not ready yet.
var loading = redistest.ReplyError("LOADING Redis is loading the dataset in memory")

// occupy holds back the answer of one call on each of the Manager's connections until release is
// called. Requests that are sent meanwhile queue. occupy uses the proxy's rule.
func (b *bubble) occupy(t *testing.T) (release func()) {
	t.Helper()
	held := make(chan struct{})
	b.proxy.OnCommand(onKeys(map[string]redistest.Fault{"occupied": redistest.HoldReply(held)}))
	var wg sync.WaitGroup
	for range connections {
		wg.Go(func() {
			redistest.Check(t, b.Run(context.Background(), newCount("occupied")))
		})
	}
	synctest.Wait()
	return func() {
		close(held)
		wg.Wait()
	}
}

// connections is how many connections a Manager opens to a server for its callers.
const connections = 4

// queued starts n calls, one after the other.
func queued(m *conn.Manager, n int, call func(i int) *conn.Call) []*started {
	calls := make([]*started, n)
	for i := range calls {
		calls[i] = start(m, call(i))
		synctest.Wait()
	}
	return calls
}

// numbered returns a call of count on a key that has the number.
func numbered(i int) *conn.Call { return newCount(fmt.Sprintf("k%03d", i)) }

// started is a call that runs on a goroutine of its own.
type started struct {
	*conn.Call
	cancel context.CancelFunc
	done   chan struct{}
	err    error
	ended  time.Time
}

// start runs c on a goroutine and returns at once.
func start(m *conn.Manager, c *conn.Call) *started { return startFor(time.Hour, m, c) }

// startFor is start with a deadline.
func startFor(d time.Duration, m *conn.Manager, c *conn.Call) *started {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	s := &started{Call: c, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.err = m.Run(ctx, c)
		s.ended = time.Now()
	}()
	return s
}

// wait returns the call's error, and fails t if it takes longer than within.
func (s *started) wait(t *testing.T, within time.Duration) error {
	t.Helper()
	select {
	case <-s.done:
		return s.err
	case <-time.After(within):
		t.Errorf("the call has not returned within %v", within)
		s.cancel()
		<-s.done
		return s.err
	}
}

// served fails t unless each of the calls is answered within that time.
func served(t *testing.T, within time.Duration, calls ...*started) {
	t.Helper()
	for i, c := range calls {
		if err := c.wait(t, within); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
}

// takes fails t unless do takes exactly that long.
func takes(t *testing.T, want time.Duration, do func()) {
	t.Helper()
	begun := time.Now()
	if do(); time.Since(begun) != want {
		t.Errorf("it took %v, want %v", time.Since(begun), want)
	}
}

// runFor runs the call for at most d.
func runFor(d time.Duration, m *conn.Manager, c *conn.Call) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return m.Run(ctx, c)
}

func mustRun(t testing.TB, m *conn.Manager, c *conn.Call) {
	t.Helper()
	if err := runFor(time.Minute, m, c); err != nil {
		t.Fatalf("%s on %q: %v", c.Script.Name(), c.Keys, err)
	}
}

// runBatch runs the calls as one batch and returns each call's outcome.
func runBatch(ctx context.Context, t testing.TB, m *conn.Manager, node string, calls []*conn.Call) []error {
	t.Helper()
	outcomes, answers := make([]error, len(calls)), make([]int, len(calls))
	m.RunBatch(ctx, time.Second, node, calls, func(i int, err error) {
		outcomes[i] = err
		answers[i]++
	})
	for i, n := range answers {
		if n != 1 {
			t.Errorf("call %d of a batch was answered %d times", i, n)
		}
	}
	return outcomes
}

// nodeOf returns the server that has key.
func nodeOf(t testing.TB, m *conn.Manager, key string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	node, err := m.Node(ctx, key)
	redistest.Must(t, err)
	redistest.Equal(t, m.KnownNode(key), node, "the known node is %q, where it is %q", node)
	return node
}

// renew runs a batch of one call, on the connection for renewals, for at most d, and returns its outcome.
func renew(t testing.TB, d time.Duration, m *conn.Manager) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return runBatch(ctx, t, m, nodeOf(t, m, "renewed"), counts("renewed"))[0]
}

// dialBy has do make the connections of a client. do is given how they are made otherwise.
func dialBy(do func(ctx context.Context, dial func() (net.Conn, error)) (net.Conn, error)) func(*redis.Options) {
	return func(o *redis.Options) {
		dial := o.Dialer
		if dial == nil {
			dial = new(net.Dialer).DialContext
		}
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return do(ctx, func() (net.Conn, error) { return dial(ctx, network, addr) })
		}
	}
}

// dialler is a Dialer that counts its dials. They fail while down is true, and hang until their context
// ends while hangs is. A dial, and each write, takes as long as latency says.
type dialler struct {
	dials       atomic.Int64
	down, hangs atomic.Bool
	latency     atomic.Int64
	largest     atomic.Int64 // how many scripts the largest write had
}

func (d *dialler) dialBy(o *redis.Options) {
	dialBy(func(ctx context.Context, dial func() (net.Conn, error)) (net.Conn, error) {
		d.dials.Add(1)
		time.Sleep(time.Duration(d.latency.Load()))
		switch {
		case d.hangs.Load():
			<-ctx.Done()
			return nil, ctx.Err()
		case d.down.Load():
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "server misbehaving", Name: "redis"}}
		}
		c, err := dial()
		if _, isSocket := c.(syscall.Conn); err != nil || isSocket {
			return c, err
		}
		return &watchedConn{c, d}, nil
	})(o)
}

// watchedConn is a connection in memory of a dialler.
type watchedConn struct {
	net.Conn
	d *dialler
}

func (c *watchedConn) Write(p []byte) (int, error) {
	c.d.largest.Store(max(c.d.largest.Load(), int64(bytes.Count(p, []byte("evalsha")))))
	time.Sleep(time.Duration(c.d.latency.Load()))
	return c.Conn.Write(p)
}

func mustMatch(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want what matches %v", err, want)
	}
}

func isScript(c redistest.Command) bool { return c.Name == "EVALSHA" || c.Name == "EVAL" }

// onScripts returns a rule that gives all scripts the fault.
func onScripts(f redistest.Fault) func(redistest.Command) redistest.Fault {
	return onCommands(f, "EVAL", "EVALSHA")
}

// onKeys returns a rule that gives the scripts on each key its fault.
func onKeys(faults map[string]redistest.Fault) func(redistest.Command) redistest.Fault {
	return func(c redistest.Command) redistest.Fault {
		for key, fault := range faults {
			if isScript(c) && slices.Contains(c.Args, key) {
				return fault
			}
		}
		return redistest.Pass
	}
}

// onCommands returns a rule that gives the commands of these names the fault.
func onCommands(f redistest.Fault, names ...string) func(redistest.Command) redistest.Fault {
	return func(c redistest.Command) redistest.Fault {
		if slices.Contains(names, c.Name) {
			return f
		}
		return redistest.Pass
	}
}

// firstScripts returns a rule that gives the first n scripts the fault.
func firstScripts(n int, f redistest.Fault) func(redistest.Command) redistest.Fault {
	var mu sync.Mutex
	return func(c redistest.Command) redistest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if !isScript(c) || n == 0 {
			return redistest.Pass
		}
		n--
		return f
	}
}

// record notes the names of the commands that pass the proxy from now on.
func record(p *redistest.FaultProxy) *lines {
	l := new(lines)
	p.OnCommand(func(c redistest.Command) redistest.Fault {
		l.Printf(context.Background(), "%s", c.Name)
		return redistest.Pass
	})
	return l
}

func (s *started) isDone() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}
