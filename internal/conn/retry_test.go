// A call retries errors that pass by themselves until ctx ends, and reports other errors at once.
// Nothing is ever sent without the caller's knowledge.

package conn_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// transient are the errors from which servers and networks recover, in the words of Redis.
var transient = []struct {
	name   string
	fault  redistest.Fault
	mayRun bool // the server may have executed the request
}{
	{"LOADING", redistest.ReplyError("LOADING Redis is loading the dataset in memory"), false},
	{"READONLY", redistest.ReplyError("READONLY You can't write against a read only replica."), false},
	{"READONLY of a script", redistest.ReplyError("READONLY You can't write against a read only replica. script: f00, on @user_script:1."), false},
	{"READONLY of Redis 6", redistest.ReplyError("ERR Error running script (call to f_f00): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica."), false},
	{"TRYAGAIN", redistest.ReplyError("TRYAGAIN Multiple keys request during rehashing of slot"), false},
	{"CLUSTERDOWN", redistest.ReplyError("CLUSTERDOWN The cluster is down"), false},
	{"CLUSTERDOWN of a slot", redistest.ReplyError("CLUSTERDOWN Hash slot not served"), false},
	{"MASTERDOWN", redistest.ReplyError("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."), false},
	{"NOREPLICAS", redistest.ReplyError("NOREPLICAS Not enough good replicas to write."), false},
	{"BUSY", redistest.ReplyError("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."), false},
	{"a slot that moves under a script", redistest.ReplyError("ERR Script attempted to access a non local key in a cluster node script: f00, on @user_script:1."), false},
	{"a slot that moves under a script of Redis 6", redistest.ReplyError("ERR Error running script (call to f_f00): @user_script:1: @user_script: 1: Lua script attempted to access a non local key in a cluster node"), false},
	{"max clients", redistest.ReplyError("ERR max number of clients reached"), false},
	{"max clients in a cluster", redistest.ReplyError("ERR max number of clients + cluster connections reached"), false},
	{"closed before", redistest.DropBefore, true},
	{"closed after", redistest.CloseAfterExec, true},
	{"half a reply", redistest.HalfReply, true},
	{"no reply", redistest.Silence, true},
}

func TestTransientErrorsAreRetried(t *testing.T) {
	const failures = 5
	for _, tc := range transient {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.warm(t)
				b.proxy.OnCommand(firstScripts(failures, tc.fault))
				c := newCount("k")
				mustRun(t, b.Manager, c)
				if c.Status() != 1 || c.Attempts != failures+1 {
					t.Errorf("reply %v in %d attempts, want success in %d", c.Reply, c.Attempts, failures+1)
				}
				if _, unheard := c.Outstanding(); unheard != tc.mayRun {
					t.Errorf("outstanding: %v, want %v", unheard, tc.mayRun)
				}
			})
		})
	}
}

func TestTransientErrorsAreRetriedUntilTheContextEnds(t *testing.T) {
	const wait = 10 * time.Second
	for _, tc := range transient {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.warm(t)
				b.proxy.OnCommand(onScripts(tc.fault))
				ctx, cancel := context.WithTimeout(t.Context(), wait)
				defer cancel()
				started, c := time.Now(), newCount("k")
				err := b.Run(ctx, c)
				mustMatch(t, err, context.DeadlineExceeded)
				if took := time.Since(started); took != wait {
					t.Errorf("took %v, want %v", took, wait)
				}
				if c.Attempts < 5 || c.Attempts > 100 {
					t.Errorf("%d attempts in %v, want one every second or sooner, or every two seconds where none is answered", c.Attempts, wait)
				}
				if !strings.Contains(err.Error(), "last failure") {
					t.Errorf("%q does not say why", err)
				}
			})
		})
	}
}

// lateEnd is a context whose timer fires a moment after its deadline, as on a busy machine.
type lateEnd struct {
	context.Context
	deadline time.Time
}

func (c lateEnd) Deadline() (time.Time, bool) { return c.deadline, true }

func TestNothingIsSentAfterTheDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		b.occupy(t)() // so that a connection would be there for a second try
		b.proxy.OnCommand(onScripts(redistest.Silence))
		before := b.proxy.Count("EVALSHA")
		const wait = 500 * time.Millisecond
		why := fmt.Errorf("its bound: %w", errs.Unavailable)
		ends, cancel := context.WithTimeoutCause(t.Context(), wait+time.Millisecond, why)
		defer cancel()
		err := b.Run(lateEnd{ends, time.Now().Add(wait)}, newCount("k"))
		mustMatch(t, err, why)
		if sent := b.proxy.Count("EVALSHA") - before; sent != 1 {
			t.Errorf("sent %d times, want once", sent)
		}
	})
}

func TestRefusedConnectionsAreRetried(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		b.proxy.Refuse(true)
		b.proxy.Cut()
		time.Sleep(time.Second) // no request is under way meanwhile
		c := start(b.Manager, newCount("k"))
		time.Sleep(5 * time.Second)
		b.proxy.Refuse(false)
		if err := c.wait(t, conn.MaxRest+time.Second); err != nil {
			t.Fatal(err)
		}
		// The first request was written to the connection that was already gone.
		if c.Attempts != 2 {
			t.Errorf("%d attempts, want 2: only requests that were sent count", c.Attempts)
		}
	})
}

func TestNothingToConnectToIsRetried(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		mustLoad(t, b.server.Client(), count)
		b.proxy.Refuse(true)
		c := start(b.Manager, newCount("k"))
		time.Sleep(5 * time.Second)
		b.proxy.Refuse(false)
		if err := c.wait(t, conn.MaxRest+time.Second); err != nil {
			t.Fatal(err)
		}
		if _, unheard := c.Outstanding(); unheard || c.Attempts != 1 {
			t.Errorf("outstanding %v, %d attempts, want 1: only requests that were sent count", unheard, c.Attempts)
		}
	})
}

func TestServerThatComesBack(t *testing.T) {
	server := redistest.Server(t)
	m := newManager(t, server.Client(t))
	mustRun(t, m, newCount("k"))
	server.Kill()
	c := start(m, newCount("k"))
	select {
	case <-c.done:
		t.Fatalf("no server, and yet %v, %v", c.err, c.Reply)
	case <-time.After(300 * time.Millisecond):
	}
	server.Restart(false)
	if err := c.wait(t, 10*time.Second); err != nil {
		t.Error(err)
	}
}

func TestServerWithTooManyClients(t *testing.T) {
	server := redistest.Server(t)
	admin := server.Admin()
	m := newManager(t, server.Client(t))
	if err := admin.ConfigSet(t.Context(), "maxclients", "1").Err(); err != nil {
		t.Fatal(err)
	}
	c := start(m, newCount("k"))
	redistest.Eventually(t, 10*time.Second, "the server turns the Manager away", func() error {
		info, err := admin.InfoMap(t.Context(), "stats").Result()
		if err != nil || info["Stats"]["rejected_connections"] == "0" {
			return fmt.Errorf("no connection was rejected (%w)", err)
		}
		return nil
	})
	if err := admin.ConfigSet(t.Context(), "maxclients", "100").Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.wait(t, 10*time.Second); err != nil {
		t.Error(err)
	}
}

// go-redis takes the server's words for the answer to its HELLO, and reports only that the
// connection is closed.
func TestAServerWithTooManyClientsIsQuoted(t *testing.T) {
	socket := filepath.Join(shortDir(t), "s")
	server := redistest.Server(t, "--unixsocket", socket)
	admin := server.Admin()
	for _, args := range [][]any{
		{"CONFIG", "SET", "maxclients", "1"},
		{"ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all"},
	} {
		if err := admin.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	const words = "ERR max number of clients reached"
	for name, change := range map[string]func(*redis.Options){
		"TCP":         func(*redis.Options) {},
		"a password":  func(o *redis.Options) { o.Username, o.Password = "app", "pw" },
		"unix socket": func(o *redis.Options) { o.Network, o.Addr = "unix", socket },
	} {
		t.Run(name, func(t *testing.T) {
			m := newManager(t, server.Client(t, change))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := m.Run(ctx, newCount("k"))
			if !errors.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), words) {
				t.Errorf("a call: %v, want what matches Unavailable and has the server's words", err)
			}
			home, err := m.Home(t.Context(), "ch")
			if err != nil {
				t.Fatal(err)
			}
			rdb, err := m.Dial(home)
			if err != nil {
				t.Fatal(err)
			}
			defer rdb.Close()
			if err := rdb.Subscribe(t.Context()).Ping(t.Context()); err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("a subscription: %v, want the server's words", err)
			}
		})
	}
}

// In a cluster the server says it in other words.
func TestAClusterWithTooManyClientsIsQuoted(t *testing.T) {
	cluster := redistest.Cluster(t, 1, 0)
	m := newManager(t, cluster.Client(t))
	mustRun(t, m, newCount("k"))
	admin := cluster.MasterOf("k").Admin()
	for _, args := range [][]any{{"CONFIG", "SET", "maxclients", "1"}, {"CLIENT", "KILL", "SKIPME", "yes"}} {
		if err := admin.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := m.Run(ctx, newCount("k"))
	if !errors.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), "ERR max number of clients + cluster connections reached") {
		t.Errorf("%v, want what matches Unavailable and has the server's words", err)
	}
}

// shortDir returns a folder whose path is short enough for a socket.
func shortDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "holdfast") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestPermanentErrorsAreToldAtOnce(t *testing.T) {
	other := errors.New("no sentinel")
	for _, tc := range []struct {
		message string
		want    error
	}{
		{"OOM command not allowed when used memory > 'maxmemory'.", errs.OutOfMemory},
		{"OOM command not allowed when used memory > 'maxmemory'. script: f00, on @user_script:1.", errs.OutOfMemory},
		{"ERR Error running script (call to f_f00): @user_script:1: @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.", errs.OutOfMemory},
		{"WRONGTYPE Operation against a key holding the wrong kind of value", errs.WrongType},
		{"WRONGTYPE Operation against a key holding the wrong kind of value script: f00, on @user_script:1.", errs.WrongType},
		{"ERR Error running script (call to f_f00): @user_script:1: WRONGTYPE Operation against a key holding the wrong kind of value", errs.WrongType},
		{"NOPERM User u has no permissions to run the 'evalsha' command", errs.Denied},
		{"ERR The user executing the script can't run this command or subcommand script: f00, on @user_script:1.", errs.Denied},
		{"ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: f00, on @user_script:1.", errs.Denied},
		{"ERR The user executing the script can't publish to the channel mentioned in the command script: f00, on @user_script:1.", errs.Denied},
		{"ERR Error running script (call to f_f00): @user_script:1: @user_script: 1: The user executing the script can't run this command or subcommand", errs.Denied},
		{"ERR ACL failure in script: User u has no permissions to run the 'incr' command script: f00, on @user_script:1.", errs.Denied},
		{"NOAUTH Authentication required.", errs.Denied},
		{"WRONGPASS invalid username-password pair or user is disabled.", errs.Denied},
		{"ERR invalid password", errs.Denied},
		{"ERR unknown command 'EVALSHA'", other},
		{"CROSSSLOT Keys in request don't hash to the same slot", other},
		{redistest.InjectedError, other},
	} {
		t.Run(tc.message, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.warm(t)
				b.proxy.OnCommand(onScripts(redistest.ReplyError(tc.message)))
				c := newCount("k")
				started := time.Now()
				err := b.Run(t.Context(), c)
				if words := conn.Words(tc.message); err == nil || !strings.Contains(err.Error(), words) {
					t.Errorf("got %v, want the server's words, %s", err, words)
				}
				if tc.want != other {
					mustMatch(t, err, tc.want)
				}
				for _, sentinel := range []error{errs.OutOfMemory, errs.WrongType, errs.Denied, errs.Closed, errs.BadArgument} {
					if sentinel != tc.want && errors.Is(err, sentinel) {
						t.Errorf("%v matches %v", err, sentinel)
					}
				}
				if took := time.Since(started); took != 0 || c.Attempts != 1 {
					t.Errorf("%d attempts in %v, want 1 at once", c.Attempts, took)
				}
				if _, unheard := c.Outstanding(); unheard {
					t.Error("what was answered is outstanding")
				}
			})
		})
	}
}

func TestPermanentErrorsOfARealServer(t *testing.T) {
	server := redistest.Server(t, "--requirepass", "secret")
	as := func(user, password string) func(*redis.Options) {
		return func(o *redis.Options) { o.Username, o.Password = user, password }
	}
	admin := server.Client(t, as("", "secret"))
	do := func(args ...any) {
		t.Helper()
		if err := admin.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	do("ACL", "SETUSER", "noscripts", "on", ">p", "~*", "&*", "+@all", "-eval", "-evalsha")
	do("ACL", "SETUSER", "nokeys", "on", ">p", "~other*", "&*", "+@all")
	do("ACL", "SETUSER", "noincr", "on", ">p", "~*", "&*", "+@all", "-incr")
	do("LPUSH", "wrong", "x")

	for _, tc := range []struct {
		name string
		opt  func(*redis.Options)
		key  string
		want error
	}{
		{"no password", as("", ""), "k", errs.Denied},
		{"wrong password", as("", "other"), "k", errs.Denied},
		{"unknown user", as("nobody", "p"), "k", errs.Denied},
		{"no right to scripts", as("noscripts", "p"), "k", errs.Denied},
		{"no right to the key", as("nokeys", "p"), "k", errs.Denied},
		{"no right to a command of the script", as("noincr", "p"), "k", errs.Denied},
		{"wrong type", as("", "secret"), "wrong", errs.WrongType},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newManager(t, server.Client(t, tc.opt))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			c := newCount(tc.key)
			mustMatch(t, m.Run(ctx, c), tc.want)
			if _, unheard := c.Outstanding(); unheard {
				t.Error("what was refused is outstanding")
			}
			node, err := m.Node(ctx, tc.key)
			if err != nil {
				t.Fatal(err)
			}
			mustMatch(t, runBatch(ctx, t, m, node, []*conn.Call{newCount(tc.key)})[0], tc.want)
		})
	}
	t.Run("out of memory", func(t *testing.T) {
		do("CONFIG", "SET", "maxmemory", "1")
		m := newManager(t, server.Client(t, as("", "secret")))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		mustMatch(t, m.Run(ctx, newCount("k")), errs.OutOfMemory)
	})
}

// The server executes a script once for each attempt of the call. go-redis by itself would execute
// it four times.
func TestNothingIsSentTwice(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault redistest.Fault
	}{
		{"closed after execution", redistest.CloseAfterExec},
		{"half a reply", redistest.HalfReply},
		{"no reply", redistest.Silence},
	} {
		t.Run(tc.name, func(t *testing.T) {
			const lost = 3
			inBubble(t, func(t *testing.T, b *bubble) {
				b.warm(t)
				b.proxy.OnCommand(firstScripts(lost, tc.fault))
				c := newCount("alone")
				mustRun(t, b.Manager, c)
				if got := b.executions(t, "alone"); got != c.Attempts || got != lost+1 {
					t.Errorf("alone: %d executions in %d attempts, want %d", got, c.Attempts, lost+1)
				}

				c = newCount("batch")
				b.proxy.OnCommand(firstScripts(1, tc.fault))
				node, _ := b.Node(t.Context(), "batch")
				if err := runBatch(t.Context(), t, b.Manager, node, []*conn.Call{c})[0]; err == nil {
					t.Error("a batch whose answer was lost has no error")
				}
				if _, unheard := c.Outstanding(); !unheard {
					t.Error("batch: the lost request is not outstanding")
				}
				if got := b.executions(t, "batch"); got != 1 || c.Attempts != 1 {
					t.Errorf("batch: %d executions in %d attempts, want 1", got, c.Attempts)
				}
			})
		})
	}
}

// Faults hit many callers of a real server at random. No caller's script runs more often than the
// caller knows of, and each script runs at least once.
func TestNothingIsSentTwiceUnderLoad(t *testing.T) {
	const callers, each = 32, 20
	server := redistest.Server(t)
	proxy := redistest.Proxy(t, server.Addr())
	m := newManager(t, proxy.Client(t))
	mustRun(t, m, newCount("warm"))
	var n atomic.Int64
	proxy.OnCommand(func(c redistest.Command) redistest.Fault {
		if !isScript(c) {
			return redistest.Pass
		}
		switch n.Add(1) % 60 {
		case 7:
			return redistest.CloseAfterExec
		case 21:
			return redistest.HalfReply
		case 42:
			return redistest.DropBefore
		case 50:
			return redistest.ReplyError("LOADING Redis is loading the dataset in memory")
		}
		return redistest.Pass
	})
	attempts := make([]int, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for range each {
				c := newCount(fmt.Sprint("k", i))
				mustRun(t, m, c)
				attempts[i] += c.Attempts
			}
		})
	}
	wg.Wait()
	if proxy.Injected() == 0 {
		t.Fatal("the proxy did nothing")
	}
	for i, a := range attempts {
		got, err := server.Admin().Get(t.Context(), fmt.Sprint("k", i)).Int()
		if err != nil || got < each || got > a {
			t.Errorf("caller %d: %d executions (%v) in %d attempts for %d calls", i, got, err, a, each)
		}
	}
}

// A call that is retried for a long time is logged once.
func TestLongSilenceIsLogged(t *testing.T) {
	warnings := new(warnings)
	inBubble(t, func(t *testing.T, b *bubble) {
		m, err := conn.New(b.proxy.Client(t), slog.New(warnings))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		b.proxy.OnCommand(onScripts(redistest.ReplyError("LOADING Redis is loading the dataset in memory")))
		for _, wait := range []time.Duration{500 * time.Millisecond, 30 * time.Second} {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			mustMatch(t, m.Run(ctx, newCount("k")), context.DeadlineExceeded)
			cancel()
		}
		if got := warnings.n.Load(); got != 1 {
			t.Errorf("%d warnings, want one, for the longer call", got)
		}
	})
}

// warnings is a slog.Handler that counts warnings.
type warnings struct{ n atomic.Int64 }

func (w *warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (w *warnings) Handle(context.Context, slog.Record) error        { w.n.Add(1); return nil }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler               { return w }
func (w *warnings) WithGroup(string) slog.Handler                    { return w }

// A MOVED to the server's own address fails only one call, although go-redis gives up the
// connection on which it came.
func TestMovedToTheSameAddressIsOneCallsFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		b.proxy.OnCommand(firstScripts(1, redistest.ReplyError("MOVED 1 "+b.proxy.Client(t).Options().Addr)))
		mustMatch(t, b.Run(t.Context(), newCount("k")), errs.BadArgument)
		mustRun(t, b.Manager, newCount("k"))
	})
}

// A Manager asks how releases are told until a cluster answers, as every call does.
func TestHowReleasesAreToldIsAskedForUntilTheClusterAnswers(t *testing.T) {
	inCluster := func(t *testing.T, scene func(t *testing.T, m *conn.Manager, proxy *redistest.FaultProxy)) {
		redistest.Bubble(t, func(t *testing.T) {
			proxy := redistest.Mini(t).Proxy()
			proxy.Refuse(true)
			rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:6379"}, Dialer: proxy.Dial})
			defer rdb.Close()
			scene(t, newManager(t, rdb), proxy)
		})
	}
	t.Run("it answers at last", func(t *testing.T) {
		inCluster(t, func(t *testing.T, m *conn.Manager, proxy *redistest.FaultProxy) {
			time.AfterFunc(time.Minute, func() { proxy.Refuse(false) })
			if command, err := m.PublishCommand(t.Context()); command != "PUBLISH" || err != nil {
				t.Errorf("%q, %v", command, err)
			}
		})
	})
	t.Run("its caller leaves", func(t *testing.T) {
		inCluster(t, func(t *testing.T, m *conn.Manager, _ *redistest.FaultProxy) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := m.PublishCommand(ctx)
			mustMatch(t, err, context.DeadlineExceeded)
			mustMatch(t, err, errs.Unavailable)
			if err == nil || !strings.Contains(err.Error(), "last failure") {
				t.Errorf("%v does not say why", err)
			}
		})
	})
	t.Run("the Client closes", func(t *testing.T) {
		inCluster(t, func(t *testing.T, m *conn.Manager, _ *redistest.FaultProxy) {
			time.AfterFunc(time.Minute, m.Interrupt)
			_, err := m.PublishCommand(t.Context())
			mustMatch(t, err, errs.Closed)
		})
	})
	t.Run("it refuses", func(t *testing.T) {
		inCluster(t, func(t *testing.T, m *conn.Manager, proxy *redistest.FaultProxy) {
			proxy.Refuse(false)
			proxy.OnCommand(func(redistest.Command) redistest.Fault {
				return redistest.ReplyError("NOAUTH Authentication required.")
			})
			_, err := m.PublishCommand(t.Context())
			mustMatch(t, err, errs.Denied)
		})
	})
}
