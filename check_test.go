// Client.Check reports what on a server voids the promises, and every operation works over every kind of connection.

package holdfast_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// checked returns what Check finds. A server may get no processor in the time that Check gives it. Then
// checked asks that server again, because the tests are not about that case.
func checked(t testing.TB, c *holdfast.Client, names ...string) (findings []holdfast.Finding, err error) {
	t.Helper()
	for range 5 {
		findings, err = c.Check(clienttest.Generous(t), names...)
		var silent net.Error
		if !(errors.As(err, &silent) && silent.Timeout()) &&
			!slices.ContainsFunc(findings, func(f holdfast.Finding) bool { return strings.Contains(f.Detail, " within 2s: ") }) {
			break
		}
		t.Log("again, as a server did not answer in time: ", findings, err)
	}
	return findings, err
}

// problems returns the kinds of Check's findings.
func problems(t testing.TB, c *holdfast.Client, names ...string) []holdfast.Problem {
	t.Helper()
	findings, err := checked(t, c, names...)
	if err != nil {
		t.Errorf("Check: %v", err)
	}
	var kinds []holdfast.Problem
	for _, f := range findings {
		t.Log(f)
		if f.Detail == "" || f.Server == "" {
			t.Errorf("a finding without words: %+v", f)
		}
		kinds = append(kinds, f.Problem)
	}
	slices.Sort(kinds)
	return kinds
}

func TestCheckServers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		args []string
		want []holdfast.Problem
	}{
		{"as it should be", []string{"--appendonly", "yes"}, nil},
		{"without persistence", nil, []holdfast.Problem{holdfast.Persistence}},
		{"snapshots only", []string{"--save", "60 1"}, []holdfast.Problem{holdfast.Persistence}},
		{"evicting", []string{"--appendonly", "yes", "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}, []holdfast.Problem{holdfast.Eviction}},
		{"evicting what expires", []string{"--appendonly", "yes", "--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl"}, []holdfast.Problem{holdfast.Eviction}},
		{"bounded", []string{"--appendonly", "yes", "--maxmemory", "100mb", "--maxmemory-policy", "noeviction"}, nil},
		{"policy without a bound", []string{"--appendonly", "yes", "--maxmemory-policy", "allkeys-lru"}, nil},
		{"evicting, forgetful", []string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-random"}, []holdfast.Problem{holdfast.Eviction, holdfast.Persistence}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := redistest.Server(t, tc.args...)
			clienttest.LeaveNothing(t, s.Admin())
			if got := problems(t, clienttest.OpenClient(t, s.Client(t))); !slices.Equal(got, tc.want) {
				t.Errorf("Check found %q, want %q", got, tc.want)
			}
		})
	}
}

// A server that is out of memory refuses what Check tries out, and its policy is known before that.
func TestCheckOfAFullServer(t *testing.T) {
	t.Parallel()
	s := redistest.Server(t, "--maxmemory-policy", "allkeys-lru")
	client := clienttest.OpenClient(t, s.Client(t))
	must(t, s.Admin().ConfigSet(t.Context(), "maxmemory", "1").Err())
	findings, err := checked(t, client)
	world.WantErr(t, err, holdfast.ErrOutOfMemory)
	var found []holdfast.Problem
	for _, f := range findings {
		found = append(found, f.Problem)
	}
	if want := []holdfast.Problem{holdfast.Eviction, holdfast.Persistence}; !slices.Equal(found, want) {
		t.Errorf("%q, want %q", found, want)
	}
}

func TestCheckWarnsOfAServerNearItsLimitOfConnections(t *testing.T) {
	const limit = "maxclients:100"
	for _, tc := range []struct {
		name string
		info []string
		want string // what Detail begins with; "" if there is no finding
	}{
		{"few", []string{"connected_clients:79", limit}, ""},
		{"many", []string{"connected_clients:80", limit}, "80 of 100 "},
		{"all", []string{"connected_clients:100", limit}, "100 of 100 "},
		{"with a cluster", []string{"connected_clients:70", "cluster_connections:10", limit}, "80 of 100 "},
		{"with replicas", []string{"connected_clients:78", "connected_slaves:2", limit}, "80 of 100 "},
		{"the server does not say how many", []string{"connected_clients:9999"}, ""},
		{"the server says nothing", []string{"maxclients:0"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			redistest.Bubble(t, func(t *testing.T) {
				server := redistest.Mini(t)
				server.SetInfo(tc.info...)
				proxy := server.Proxy()
				findings, err := clienttest.OpenClient(t, proxy.Client(t)).Check(t.Context())
				must(t, err)
				found := ""
				for _, f := range findings {
					if f.Problem == holdfast.Connections {
						found += f.Detail
					}
				}
				if found == "" != (tc.want == "") || !strings.HasPrefix(found, tc.want) {
					t.Errorf("found %q, want %q", found, tc.want)
				}
				world.Equal(t, proxy.Count("INFO"), 1, "Check asked %d times, want once")
			})
		})
	}
}

// Check reports a Quorum if its number of servers adds nothing.
func TestCheckQuorums(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][]holdfast.Problem{1: {holdfast.Servers}, 2: {holdfast.Servers}, 3: nil, 4: {holdfast.Servers}} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			var clients []*holdfast.Client
			for range n {
				clients = append(clients, clienttest.OpenClient(t, redistest.Server(t, "--appendonly", "yes").Client(t)))
			}
			l, err := holdfast.NewQuorum("q", clients).Lock(clienttest.Generous(t))
			must(t, err)
			must(t, l.Release(t.Context()))
			if got := problems(t, clients[0]); !slices.Equal(got, want) {
				t.Errorf("of %d servers: Check found %q, want %q", n, got, want)
			}
		})
	}
}

func TestCheckReplicated(t *testing.T) {
	t.Parallel()
	master := redistest.Server(t, "--appendonly", "yes", "--repl-diskless-sync-delay", "0")
	host, port, _ := net.SplitHostPort(master.Addr())
	replica := redistest.Server(t, "--appendonly", "yes", "--replicaof", host, port)
	redistest.InSync(t, master, 1)
	if got := problems(t, clienttest.OpenClient(t, master.Client(t))); !slices.Equal(got, []holdfast.Problem{holdfast.Replication}) {
		t.Errorf("Check of a master found %q, want replication", got)
	}
	// Check of a replica returns with a finding: no caller can lock on a replica.
	findings, err := clienttest.OpenClient(t, replica.Client(t)).Check(clienttest.Generous(t))
	if !slices.ContainsFunc(findings, func(f holdfast.Finding) bool { return f.Problem == holdfast.Replication }) {
		t.Errorf("Check of a replica found %v, %v, want replication", findings, err)
	}
}

func TestCheckSaysThatAClientWaitsForReplicasInVain(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t, "--appendonly", "yes")
	as := clienttest.User(t, server, "app", "~*", "&*", "+@all", "-wait")
	waits := clienttest.OpenClient(t, server.Client(t, as), holdfast.WithReplicas(2))
	if got, want := problems(t, waits), []holdfast.Problem{holdfast.Replication, holdfast.Rights}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := problems(t, clienttest.OpenClient(t, server.Client(t, as))); len(got) > 0 {
		t.Errorf("a Client that waits for no replicas: %v", got)
	}
	_, err := waits.Mutex("m").TryLock(t.Context())
	if !errors.Is(err, holdfast.ErrDenied) || errors.Is(err, holdfast.ErrNotReplicated) {
		t.Errorf("%v, want what matches ErrDenied", err)
	}
}

func TestCheckCluster(t *testing.T) {
	t.Parallel()
	s := redistest.Cluster(t, 3, 0, "--appendonly", "yes")
	rdb := s.Client(t)
	clienttest.LeaveNothing(t, rdb)
	if got := problems(t, clienttest.OpenClient(t, s.Client(t)), "a", "b", "c{d}", "e}f"); len(got) != 0 {
		t.Errorf("Check found %q", got)
	}
	must(t, s.MasterOf("a").Admin().ConfigSet(t.Context(), "appendonly", "no").Err())
	findings, err := checked(t, clienttest.OpenClient(t, s.Client(t)))
	if err != nil || len(findings) != 1 || findings[0].Problem != holdfast.Persistence || findings[0].Server != s.MasterOf("a").Addr() {
		t.Errorf("Check found %v, %v, want persistence of %s", findings, err, s.MasterOf("a").Addr())
	}
}

func TestCheckRights(t *testing.T) {
	t.Parallel()
	s := redistest.Server(t, "--appendonly", "yes")
	clienttest.LeaveNothing(t, s.Admin())
	// These are the least rights that docs/connecting.md asks for.
	tokens := "~redisson_lock_token:*"
	channels := "&redisson_lock__channel:* &holdfast_lock_grant:*"
	commands := []string{"+@connection", "+@scripting", "+@pubsub", "+info", "+time", "+pttl", "+pexpire", "+hset", "+hget", "+hexists", "+hdel", "+hgetall", "+get", "+set", "+zadd", "+zrem", "+zcard", "+zscore", "+zrange", "~holdfast_lock_*"}
	all := func(more ...string) []string { return strings.Fields(strings.Join(append(commands, more...), " ")) }
	for _, tc := range []struct {
		name   string
		rules  []string
		names  []string
		rights int // findings of that kind
	}{
		{"enough", all("~orders:*", tokens, channels), []string{"orders:"}, 0},
		{"everything", []string{"~*", "&*", "+@all"}, nil, 0},
		{"other names", all("~orders:*", tokens, channels), []string{"orders:", "stock:"}, 1},
		{"no channels", all("~orders:*", tokens, "resetchannels"), []string{"orders:"}, 1},
		{"no scripts", all("~orders:*", tokens, channels, "-evalsha", "-eval"), []string{"orders:"}, 1},
		{"no publish", all("~orders:*", tokens, channels, "-publish"), []string{"orders:"}, 1},
		{"no subscribe", all("~orders:*", tokens, channels, "-subscribe"), []string{"orders:"}, 1},
		{"no info", all("~orders:*", tokens, channels, "-info"), []string{"orders:"}, 1},
		{"nothing but a connection", []string{"+@connection"}, []string{"orders:"}, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := clienttest.OpenClient(t, s.Client(t, clienttest.User(t, s, "checked", tc.rules...)))
			if got := refusals(t, c, tc.names...); got["mutex"]+got[""] != tc.rights {
				t.Errorf("Check found %v, want %d that concern a mutex", got, tc.rights)
			}
		})
	}
}

// refusals counts by kind what Check finds about rights. It fails the test if Check finds anything else.
func refusals(t *testing.T, c *holdfast.Client, names ...string) map[string]int {
	t.Helper()
	findings, err := checked(t, c, names...)
	if err != nil {
		t.Errorf("Check: %v", err)
	}
	kinds := make(map[string]int)
	for _, f := range findings {
		if f.Problem != holdfast.Rights || f.Detail == "" || f.Server == "" {
			t.Errorf("Check found %v", f)
		}
		kinds[f.Kind]++
	}
	return kinds
}

// Check names a command that the server does not have, as where it is renamed or disabled, and goes on.
func TestCheckFindsCommandsThatTheServerDoesNotHave(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"DEL", "PEXPIRE", "HSET", "SUBSCRIBE", "PUBLISH", "EVALSHA", "EVAL", "ZADD"} {
		s := redistest.Server(t, "--appendonly", "yes", "--rename-command", command, "")
		c := clienttest.OpenClient(t, s.Client(t))
		findings, err := checked(t, c, "orders:")
		if err != nil {
			t.Errorf("without %s: %v", command, err)
		}
		if !slices.ContainsFunc(findings, func(f holdfast.Finding) bool {
			return f.Problem == holdfast.Rights && strings.Contains(strings.ToLower(f.Detail), strings.ToLower(command))
		}) {
			t.Errorf("without %s Check found %v", command, findings)
		}
		for _, f := range findings {
			if strings.Contains(f.Detail, "beginning with") {
				t.Errorf("without %s: %v", command, f)
			}
		}
	}
}

// Check says so if the Client is to say who it is, and may not. One rule for its prefix gives a Client all its rights.
func TestCheckTheRightsOfAnIdentity(t *testing.T) {
	t.Parallel()
	s := redistest.Server(t, "--appendonly", "yes")
	for what, want := range map[string]int{"+@all ~*": 0, "+evalsha +eval +time +ping +info ~holdfast_client:{holdfast}:* +del +pexpire +hset +hget": 0, "+@all ~holdfast:* ~*{holdfast:*": 1, "+@all ~* -hset": 1} {
		rules := append(strings.Fields(what), "allchannels")
		c := clienttest.OpenClient(t, s.Client(t, clienttest.User(t, s, "u", rules...)), holdfast.WithIdentity("pod"))
		if got := refusals(t, c); got["identity"] != want {
			t.Errorf("%s: Check found %v", what, got)
		}
	}
	as := clienttest.User(t, s, "app", "~app:*", "&app:*", "+@all")
	c := clienttest.OpenClient(t, s.Client(t, as), holdfast.WithKeyPrefix("app:"), holdfast.WithIdentity("pod"))
	if got := refusals(t, c, "", "orders"); len(got) > 0 {
		t.Errorf("with all rights for its prefix: Check found %v", got)
	}
}

// Each kind's line in docs/connecting.md grants enough rights for that kind, and no right in the line can be spared.
func TestCheckRightsOfEachKind(t *testing.T) {
	t.Parallel()
	s := redistest.Server(t, "--appendonly", "yes")
	clienttest.LeaveNothing(t, s.Admin())
	every, of := doctest.DocumentedRights(t)
	every = append(slices.DeleteFunc(every, func(rule string) bool { return rule[0] == '~' }), "+info")
	for kind, row := range map[string]string{
		"mutex": "Mutex", "rwlock": "RWMutex", "semaphore": "Semaphore", "permits": "PermitSemaphore",
		"latch": "Latch", "barrier": "Barrier", "limiter": "Limiter", "shards": "Shards", "leader": "Leader", "once": "Once", "quorum": "Quorum",
	} {
		rules := append([]string{"~orders:*"}, of[row]...)
		if kind == "once" || kind == "barrier" || kind == "limiter" || kind == "shards" {
			rules = rules[1:] // nothing of a Once, a Barrier, a Limiter or a Shards stands at its name
		}
		without := func(spared string) map[string]int {
			left := slices.DeleteFunc(slices.Concat(every, rules), func(rule string) bool { return rule == spared })
			return refusals(t, clienttest.OpenClient(t, s.Client(t, clienttest.User(t, s, kind, left...))), "orders:")
		}
		if got := without(""); got[kind]+got[""] != 0 {
			t.Errorf("%s: with the rights of docs/connecting.md Check found %v", kind, got)
		}
		if kind == "quorum" {
			rules = []string{"~holdfast_quorum", "~holdfast_quorum_turns:{orders:*"} // without any other right Check reports the mutex
		}
		for _, rule := range rules {
			if got := without(rule); got[kind] == 0 && rule != "+pubsub" { // without +pubsub a release publishes more than it must
				t.Errorf("%s: without %s Check found %v", kind, rule, got)
			}
		}
	}
}

// Check ends with its context, whether the server is gone or silent.
func TestCheckOfAServerThatIsGone(t *testing.T) {
	for what, fail := range map[string]func(*redistest.FaultProxy){
		"gone": func(p *redistest.FaultProxy) { p.Refuse(true) }, "silent": func(p *redistest.FaultProxy) {
			p.OnCommand(func(redistest.Command) redistest.Fault { return redistest.Silence })
		},
	} {
		t.Run(what, func(t *testing.T) {
			unreachable(t, func(t *testing.T, c *holdfast.Client, _ *redistest.MiniServer, proxy *redistest.FaultProxy) {
				fail(proxy)
				began := time.Now()
				if findings, err := c.Check(redistest.Within(t, 500*time.Millisecond)); err == nil || time.Since(began) > 500*time.Millisecond {
					t.Errorf("after %v Check found %v, %v", time.Since(began), findings, err)
				}
			})
		})
	}
}

// A server that is far away answers each question, and nothing is found, also where scripts may not publish. If Check's
// context ends before all is tried out, Check returns that.
func TestCheckOfAServerThatIsFarAway(t *testing.T) {
	for _, how := range []redistest.Strictness{redistest.AnyScript, redistest.NoPubSub} {
		unreachable(t, func(t *testing.T, c *holdfast.Client, server *redistest.MiniServer, proxy *redistest.FaultProxy) {
			server.CheckScripts(how)
			server.SetInfo("aof_enabled:1")
			proxy.OnCommand(func(redistest.Command) redistest.Fault { return redistest.Delay(100 * time.Millisecond) })
			if findings, err := c.Check(t.Context()); len(findings) > 0 || err != nil {
				t.Errorf("Check found %v, %v", findings, err)
			}
			findings, err := c.Check(redistest.Within(t, 600*time.Millisecond))
			world.WantErr(t, err, context.DeadlineExceeded)
			world.Equal(t, len(findings), 0, "it found %d, want %d")
		})
	}
}

func TestKindsOfConnection(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "holdfast") //nolint:usetesting // t.TempDir is too long for a socket
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "redis.sock")
	authority := redistest.NewAuthority(t)
	s, tlsAddr := redistest.TLSServer(t, authority, "--appendonly", "yes", "--unixsocket", socket)
	clienttest.LeaveNothing(t, s.Admin())
	secret := clienttest.User(t, s, "app", "~*", "&*", "+@all")
	overTLS := func(o *redis.Options) { o.Addr, o.TLSConfig = tlsAddr, &tls.Config{RootCAs: authority.Trust} }
	overUnix := func(o *redis.Options) { o.Network, o.Addr = "unix", socket }
	for what, of := range map[string][]func(*redis.Options){
		"plain":            nil,
		"ACL user":         {secret},
		"TLS":              {overTLS},
		"TLS and ACL user": {overTLS, secret},
		"unix socket":      {overUnix},
		"another database": {func(o *redis.Options) { o.DB = 7 }},
	} {
		for _, protocol := range []int{2, 3} {
			t.Run(fmt.Sprintf("%s RESP%d", what, protocol), func(t *testing.T) {
				opts := append(slices.Clone(of), func(o *redis.Options) { o.Protocol = protocol })
				useAll(t, s.Client(t, opts...), s.Client(t, opts...))
			})
		}
	}
}

// useAll does once everything that goes over a connection: grants, refusals, re-entry, renewal, a
// message, a cancelled wait, Check.
func useAll(t *testing.T, one, two *redis.Client) {
	const name = "conformance"
	a, b := clienttest.OpenClient(t, one), clienttest.OpenClient(t, two)
	if got := problems(t, a); len(got) != 0 {
		t.Errorf("Check found %q", got)
	}
	m := a.Mutex(name)
	l := clienttest.Grab(t, m)
	inner, err := m.Lock(l.Context(clienttest.Generous(t)))
	must(t, err)
	world.WantErr(t, errOf(b.Mutex(name).TryLock(clienttest.Generous(t))), holdfast.ErrBusy)
	short := redistest.Within(t, 50*time.Millisecond)
	world.WantErr(t, errOf(b.Mutex(name).Lock(short)), holdfast.ErrBusy, context.DeadlineExceeded)
	must(t, l.Extend(clienttest.Generous(t), time.Minute))
	clienttest.StillHeld(t, one, name, l)
	granted := make(chan struct{})
	go func() {
		defer close(granted)
		clienttest.GiveBack(t, clienttest.Grab(t, b.Mutex(name)))
	}()
	clienttest.GiveBack(t, inner, l)
	<-granted
}
