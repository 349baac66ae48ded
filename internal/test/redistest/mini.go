// An embedded server without sockets, for virtual time in a synctest bubble.

package redistest

import (
	"bufio"
	"context"
	"io"
	"maps"
	"net"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	lua "github.com/yuin/gopher-lua"
)

// MiniServer is a miniredis that is reached in memory only. Its TTLs follow time.Now, and it
// also knows SPUBLISH, SSUBSCRIBE, SUNSUBSCRIBE and READONLY. A sharded message reads as a
// plain one. FailInside, FailCommand, SetInfo and CheckScripts use the pre-hook of its Server, so tests
// must not set it.
type MiniServer struct {
	*miniredis.Miniredis

	t testing.TB

	mu         sync.Mutex
	failure    *scriptFailure
	info       string
	strictness Strictness
	denied     []string
	before     func(name string)

	deaf atomic.Bool // messages are dropped

	loading sync.Mutex
	loader  *server.Peer
	scripts map[string]string // by digest: those that are loaded when they are first called
}

// miniredis makes a Lua state for each script that it runs, and its default takes 80 KB. Ours need less.
func init() { lua.RegistrySize, lua.CallStackSize = 1024, 64 }

// Mini starts an embedded server. If it is called inside a synctest bubble, the whole server
// lives there, and its time is the bubble's. The server closes when t ends, after the clients
// that came from it.
func Mini(t testing.TB) *MiniServer {
	t.Helper()
	m := &MiniServer{Miniredis: miniredis.NewMiniRedis(), t: t, loader: server.NewPeer(bufio.NewWriter(io.Discard))}
	m.ClockTTL(true)
	// The first connection starts the server; ours are made by Dial below.
	first, err := m.Miniredis.Dial()
	if err != nil {
		t.Fatalf("redistest: start the embedded server: %v", err)
	}
	first.Close()
	t.Cleanup(m.Close)
	if err := registerShardedPubSub(m.Server()); err != nil {
		t.Fatalf("redistest: %v", err)
	}
	m.Server().SetPreHook(m.preHook)
	return m
}

func registerShardedPubSub(s *server.Server) error {
	for sharded, plain := range map[string]string{
		"SPUBLISH": "PUBLISH", "SSUBSCRIBE": "SUBSCRIBE", "SUNSUBSCRIBE": "UNSUBSCRIBE",
	} {
		err := s.Register(sharded, func(c *server.Peer, _ string, args []string) {
			s.Dispatch(c, append([]string{plain}, args...))
		})
		if err != nil {
			return err
		}
	}
	return s.Register("READONLY", func(c *server.Peer, _ string, _ []string) { c.WriteOK() })
}

// Dial connects in memory. It is a redis.Options.Dialer; network and address
// are ignored.
func (m *MiniServer) Dial(context.Context, string, string) (net.Conn, error) {
	client, conn := memPipe()
	// A Client that closes does not wait for a Dialer, so this may run beside Close.
	m.Lock()
	defer m.Unlock()
	s := m.Server()
	if s == nil {
		return nil, net.ErrClosed
	}
	s.ServeConn(conn)
	return client, nil
}

// Client returns a new client of the server, as [Proc.Client].
func (m *MiniServer) Client(opts ...func(*redis.Options)) *redis.Client {
	m.t.Helper()
	return newClient(m.t, &redis.Options{Dialer: m.Dial}, opts)
}

// Proxy returns a proxy in front of the server that is reached in memory, by
// its Dial and Client: the faults of [Proxy] in a synctest bubble.
func (m *MiniServer) Proxy(ways ...Way) *FaultProxy {
	m.t.Helper()
	p := newProxy(m.t, func() (net.Conn, error) { return m.Dial(context.Background(), "", "") })
	for _, way := range ways {
		way(&p.road)
	}
	return p
}

// Snapshot returns all keys of database 0 with type, remaining time to live in
// ms (-1 is none) and value, as sorted text: equal texts are equal states.
func (m *MiniServer) Snapshot() string {
	m.t.Helper()
	c := redis.NewClient(&redis.Options{Dialer: m.Dial, MaintNotificationsConfig: quiet()})
	defer c.Close()
	return snapshot(m.t, c, "pttl")
}

// scriptFailure is an armed failure inside a script.
type scriptFailure struct {
	name  string // "" means any command
	k     int
	seen  int
	last  *server.Peer
	fired bool
}

// FailInside arms a failure: in the next script, the k-th command that it issues, counted from
// 1, does not run and returns an error. The returned function disarms it and reports whether it
// fired; it did not if the script issued fewer commands:
//
//	for k, fired := 1, true; fired; k++ {
//		disarm := m.FailInside(k)
//		... run the script, look at the state it leaves ...
//		fired = disarm()
//	}
//
// One failure is armed at a time. The count starts again with each EVAL or EVALSHA, so only one
// connection should run scripts meanwhile.
func (m *MiniServer) FailInside(k int) (disarm func() (fired bool)) {
	return m.arm(&scriptFailure{k: k})
}

// FailCommand is FailInside, but counts only the commands called name.
func (m *MiniServer) FailCommand(name string, k int) (disarm func() (fired bool)) {
	return m.arm(&scriptFailure{name: strings.ToUpper(name), k: k})
}

func (m *MiniServer) arm(f *scriptFailure) func() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failure = f
	return func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.failure == f {
			m.failure = nil
		}
		return f.fired
	}
}

// SetInfo makes the server answer each INFO with these fields, such as "maxclients:100", and no
// others.
func (m *MiniServer) SetInfo(fields ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.info = strings.Join(fields, "\r\n") + "\r\n"
}

// InjectedError is the error of a command that FailInside makes fail.
const InjectedError = "ERR injected failure"

// Before makes the server call f before each command that may write, except those inside a script.
func (m *MiniServer) Before(f func(name string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before = f
}

// DropMessages has the server drop messages that are published, or deliver them again. Those who publish do
// not notice.
func (m *MiniServer) DropMessages(on bool) { m.deaf.Store(on) }

// drops answers a command that publishes while messages are dropped.
func (m *MiniServer) drops(peer *server.Peer, name string, args []string) bool {
	if !m.deaf.Load() || name != "PUBLISH" && name != "SPUBLISH" {
		return false
	}
	peer.WriteInt(1) // as far as those who publish can tell, one has heard it
	return true
}

// tellBefore calls what Before has set.
func (m *MiniServer) tellBefore(peer *server.Peer, name string) {
	m.mu.Lock()
	f := m.before
	m.mu.Unlock()
	if f != nil && !insideScript(peer) && !m.IsReadOnlyCommand(name) {
		f(name)
	}
}

// HasScripts makes the server know scripts, by their digests, as if they had been loaded: until SCRIPT FLUSH, EVALSHA
// finds them. To load all of them would take a world of a test longer than most of its scenes.
func (m *MiniServer) HasScripts(byDigest map[string]string) {
	m.loading.Lock()
	defer m.loading.Unlock()
	m.scripts = maps.Clone(byDigest)
}

// load loads the script that a command calls, if it is one of HasScripts.
func (m *MiniServer) load(name string, args []string) {
	if len(args) == 0 || name != "EVALSHA" && name != "SCRIPT" {
		return
	}
	m.loading.Lock()
	defer m.loading.Unlock()
	if name == "SCRIPT" && strings.EqualFold(args[0], "FLUSH") {
		clear(m.scripts)
	} else if source, ok := m.scripts[args[0]]; ok {
		delete(m.scripts, args[0])
		m.Server().Dispatch(m.loader, []string{"SCRIPT", "LOAD", source})
	}
}

// preHook runs before every command, including those that a script issues. It returns true if
// it has answered the command.
func (m *MiniServer) preHook(peer *server.Peer, name string, args ...string) bool {
	if peer == m.loader {
		return false
	}
	m.load(name, args)
	m.tellBefore(peer, name)
	if name == "INFO" && m.answersInfo(peer) || m.refuses(peer, name, args) || m.denies(peer, name) || m.drops(peer, name, args) {
		return true
	}
	if !m.fails(peer, name) {
		return false
	}
	peer.WriteError(InjectedError)
	return true
}

func (m *MiniServer) answersInfo(peer *server.Peer) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.info != "" {
		peer.WriteBulk(m.info)
	}
	return m.info != ""
}

func (m *MiniServer) fails(peer *server.Peer, name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.failure
	if f == nil || f.fired {
		return false
	}
	if !insideScript(peer) {
		if strings.HasPrefix(name, "EVAL") {
			f.seen = 0
		}
		return false
	}
	// Each redis.call has a peer of its own; the same one again is SPUBLISH
	// dispatching its PUBLISH.
	if peer == f.last {
		return false
	}
	f.last = peer
	if f.name == "" || f.name == name {
		f.seen++
	}
	f.fired = f.seen == f.k && (f.name == "" || f.name == name)
	return f.fired
}

// insideScript reads miniredis's own mark of a command issued by a script.
// There is no public one, and guessing by the EVAL before it would take the
// commands of other connections for the script's.
func insideScript(peer *server.Peer) bool {
	if peer.Ctx == nil {
		return false
	}
	nested := reflect.Indirect(reflect.ValueOf(peer.Ctx)).FieldByName("nested")
	return nested.IsValid() && nested.Bool()
}
