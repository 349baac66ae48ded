// The behaviour tests run in a world: one Redis on virtual time, any number of processes that use
// it, and one onlooker.

package holdfast_test

import (
	"bytes"
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/rlock"
)

// The scripts of the mutex, by the names that a sending carries, and the renewals of a read-write
// lock.
const (
	lockRun    = "lock"  // sent by a call that does not wait
	enterRun   = "enter" // sent by a call that waits
	recountRun = "recount"
	renewRun   = "renew"
	manyRun    = "renewmany" // renews several holds
	freeRun    = "free"      // a release that assumes that nobody waits
	releaseRun = "release"   // any other release
	moveRun    = "move"
	stateRun   = "state"

	writeRenewRun = "rw renew"
	readRenewRun  = "rw read renew"
)

// name is the lock that most tests use. The other constants name its neighbours in Redis.
const (
	name      = "myLock"
	tokenKey  = "redisson_lock_token:{myLock}"
	channel   = "redisson_lock__channel:{myLock}"
	allTokens = "redisson_lock_token:"
)

// world is one Redis in a synctest bubble. The world loads the scripts when it begins, so that
// every call is one EVALSHA.
type world struct {
	t       *testing.T
	mini    *redistest.MiniServer
	rdb     *redis.Client // the onlooker's
	start   time.Time
	scripts map[string]string // sha or source to name

	processes []*process
}

// play runs scene in a world of its own, on virtual time. After scene, play closes every process.
// Then no channel and no key except tokens may be left.
func play(t *testing.T, scene func(t *testing.T, w *world)) {
	t.Helper()
	redistest.Bubble(t, func(t *testing.T) {
		w := &world{t: t, mini: redistest.Mini(t), start: time.Now(), scripts: make(map[string]string)}
		w.rdb = w.mini.Client()
		w.load()
		scene(t, w)
		for _, p := range w.processes {
			p.Close()
		}
		redistest.LeftBehind(t, w.rdb, allTokens)
	})
}

// sources lists the files that make up each script of the mutex and of the read-write lock.
var sources = map[string][]string{
	lockRun:     {"internal/lockhash/lua/token.lua", "rlock/lua/lock.lua"},
	enterRun:    {"internal/lockhash/lua/token.lua", "internal/lockhash/lua/queue.lua", "internal/lockhash/lua/enter.lua"},
	recountRun:  {"internal/lockhash/lua/recount.lua"},
	renewRun:    {"internal/lockhash/lua/renew.lua"},
	"renewmany": {"internal/lockhash/lua/renewmany.lua"},
	freeRun:     {"internal/lockhash/lua/free.lua"},
	releaseRun:  {"internal/lockhash/lua/token.lua", "internal/lockhash/lua/queue.lua", "internal/lockhash/lua/release.lua"},
	moveRun:     {"internal/lockhash/lua/move.lua"},
	stateRun:    {"internal/lockhash/lua/state.lua"},
	"stripes":   {"rlock/lua/stripes.lua"},

	"rw lock":         {"rwlock/lua/holders.lua", "rwlock/lua/marks.lua", "rwlock/lua/lock.lua"},
	"rw recount":      {"rwlock/lua/recount.lua"},
	writeRenewRun:     {"rwlock/lua/renew.lua"},
	"rw release":      {"rwlock/lua/holders.lua", "rwlock/lua/marks.lua", "rwlock/lua/release.lua"},
	"rw read lock":    {"rwlock/lua/marks.lua", "rwlock/lua/rlock.lua"},
	"rw read recount": {"rwlock/lua/holders.lua", "rwlock/lua/rrecount.lua"},
	readRenewRun:      {"rwlock/lua/holders.lua", "rwlock/lua/rrenew.lua"},
	"rw read release": {"rwlock/lua/holders.lua", "rwlock/lua/marks.lua", "rwlock/lua/rrelease.lua"},
	"rw look":         {"rwlock/lua/holders.lua", "rwlock/lua/look.lua"},
}

// crowd lets p find out that q waits for the lock. p remembers this for 10 s: in that time the
// releases of p look for waiters at once.
func (w *world) crowd(p, q *process) {
	w.t.Helper()
	l := w.lock(w.t.Context(), p.mutex)
	a := w.goLock(w.t.Context(), q.mutex)
	synctest.Wait()
	w.release(l)
	next, err := a.result()
	if err != nil {
		w.t.Fatal(err)
	}
	w.release(next)
}

// lua holds the scripts as they were when the test was built, like the code under test. If a build
// overlays these files with others, it overlays them for both.
//
//go:embed internal/lockhash/lua rlock/lua rwlock/lua
var lua embed.FS

// load loads every script and records its name.
func (w *world) load() {
	w.t.Helper()
	for script, files := range sources {
		var source strings.Builder
		for _, file := range files {
			text, err := lua.ReadFile(file)
			if err != nil {
				w.t.Fatal(err)
			}
			source.Write(text)
		}
		sum := sha1.Sum([]byte(source.String()))
		w.scripts[hex.EncodeToString(sum[:])] = script
		w.scripts[source.String()] = script
		if err := w.rdb.ScriptLoad(w.t.Context(), source.String()).Err(); err != nil {
			w.t.Fatalf("load %s: %v", script, err)
		}
	}
}

// at sleeps until d after the beginning.
func (w *world) at(d time.Duration) {
	w.t.Helper()
	if late := w.now() - d; late > 0 {
		w.t.Fatalf("it is %v already, %v later than the test wants", w.now(), late)
	}
	time.Sleep(d - w.now())
	synctest.Wait()
}

// now returns how long ago the world began.
func (w *world) now() time.Duration { return time.Since(w.start) }

// pttl returns a key's time to live. -2 ns means that there is no key, -1 ns that the key never
// expires.
func (w *world) pttl(key string) time.Duration {
	w.t.Helper()
	d, err := w.rdb.PTTL(w.t.Context(), key).Result()
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// holders returns the fields of the lock's hash, sorted, each as "owner=count".
func (w *world) holders(key string) []string {
	w.t.Helper()
	fields, err := w.rdb.HGetAll(w.t.Context(), key).Result()
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for holder, count := range fields {
		all = append(all, holder+"="+count)
	}
	slices.Sort(all)
	return all
}

// wantTTL fails the test unless the lock's time to live is exactly d.
func (w *world) wantTTL(d time.Duration) {
	w.t.Helper()
	if got := w.pttl(name); got != d {
		w.t.Errorf("at %v: PTTL %v, want %v", w.now(), got, d)
	}
}

// wantHolder fails the test unless owner alone holds the lock, with that count. For a count of 1 it
// also accepts 0: after a hand-over the new holder may not have set its count yet.
func (w *world) wantHolder(owner lease.Owner, count int) {
	w.t.Helper()
	want := []string{fmt.Sprintf("%s=%d", owner, count)}
	handed := []string{fmt.Sprintf("%s=0", owner)}
	if got := w.holders(name); !slices.Equal(got, want) && (count != 1 || !slices.Equal(got, handed)) {
		w.t.Errorf("at %v: held by %q, want %q", w.now(), got, want)
	}
}

// wantFree fails the test if the lock's key exists.
func (w *world) wantFree() {
	w.t.Helper()
	if got := w.pttl(name); got != -2 {
		w.t.Errorf("at %v: still held by %q for %v", w.now(), w.holders(name), got)
	}
}

// messages subscribes to the channels. The function that it returns ends the subscription and
// returns the messages that came, each with its instant.
func (w *world) messages(channels ...string) func() []string {
	w.t.Helper()
	ps := w.rdb.Subscribe(context.Background(), channels...)
	for range channels {
		if _, err := ps.Receive(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
	var got []string
	var done sync.WaitGroup
	done.Go(func() {
		for {
			m, err := ps.ReceiveMessage(context.Background())
			if err != nil {
				return
			}
			got = append(got, fmt.Sprintf("%v %s", w.now(), m.Payload))
		}
	})
	return func() []string {
		synctest.Wait()
		ps.Close()
		done.Wait()
		return got
	}
}

// process is one process of the world: a Client behind a network of its own.
type process struct {
	*holdfast.Client
	w     *world
	net   *redistest.FaultProxy
	mutex *rlock.Mutex // on name

	mu    sync.Mutex
	sent  []sending
	rule  func(sending) redistest.Fault
	conns []net.Conn    // the process's ends of its connections
	quiet chan struct{} // while it is open, the process reads no message; nil: it reads all
}

// sending is one run of a script on its way to Redis.
type sending struct {
	script string
	n      int           // counts the runs of that script, from 1
	at     time.Duration // since the beginning
	conn   int64
}

// process starts a process.
func (w *world) process(options ...holdfast.Option) *process {
	w.t.Helper()
	p := &process{w: w, net: w.mini.Proxy()}
	p.net.OnCommand(p.observe)
	p.Client = holdfast.New(p.net.Client(w.t, func(o *redis.Options) { o.Dialer = p.dial }),
		append([]holdfast.Option{holdfast.WithLogger(redistest.Watched())}, options...)...)
	p.mutex = p.Mutex(name)
	w.processes = append(w.processes, p)
	w.t.Cleanup(func() { p.Close() })
	return p
}

// observe notes a run of a script and asks the rule for the fault that the run meets.
func (p *process) observe(c redistest.Command) redistest.Fault {
	if len(c.Args) == 0 {
		return redistest.Pass
	}
	script := p.w.scripts[c.Args[0]]
	if script == "" {
		return redistest.Pass
	}
	p.mu.Lock()
	s := sending{script: script, n: 1, at: p.w.now(), conn: c.Conn}
	for _, earlier := range p.sent {
		if earlier.script == script {
			s.n++
		}
	}
	p.sent = append(p.sent, s)
	rule := p.rule
	p.mu.Unlock()
	if rule == nil {
		return redistest.Pass
	}
	return rule(s)
}

// on sets the fault for the n-th run of a script, counted from now. Every other run passes.
func (p *process) on(script string, n int, fault redistest.Fault) {
	before := p.runs(script)
	p.each(func(s sending) redistest.Fault {
		if s.script == script && s.n == before+n {
			return fault
		}
		return redistest.Pass
	})
}

// each sets the rule that decides about each run of a script. With nil, every run passes.
func (p *process) each(rule func(sending) redistest.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = rule
}

// runs counts how often a script was sent; "" counts all.
func (p *process) runs(script string) int { return len(p.times(script)) }

// times returns when a script was sent.
func (p *process) times(script string) []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []time.Duration
	for _, s := range p.sent {
		if script == "" || s.script == script {
			all = append(all, s.at)
		}
	}
	return all
}

// dial connects the process.
func (p *process) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := p.net.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, conn)
	return &hearing{Conn: conn, p: p}, nil
}

// hearing is a process's end of a connection. Messages may come on that connection.
type hearing struct {
	net.Conn
	p          *process
	subscribed atomic.Bool
}

func (h *hearing) Write(b []byte) (int, error) {
	if bytes.Contains(bytes.ToLower(b), []byte("subscribe")) {
		h.subscribed.Store(true)
	}
	return h.Conn.Write(b)
}

func (h *hearing) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	if h.subscribed.Load() {
		h.p.mu.Lock()
		quiet := h.p.quiet
		h.p.mu.Unlock()
		if quiet != nil {
			<-quiet
		}
	}
	return n, err
}

// mute stops the process from reading messages until unmute.
func (p *process) mute() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.quiet == nil {
		p.quiet = make(chan struct{})
	}
}

func (p *process) unmute() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.quiet != nil {
		close(p.quiet)
		p.quiet = nil
	}
}

// forget clears the record of what the process has sent.
func (p *process) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = nil
}

// hangUp closes the process's ends of its connections. What the process has sent still arrives, but
// the process hears no answer.
func (p *process) hangUp() {
	p.mu.Lock()
	conns := p.conns
	p.conns = nil
	p.mu.Unlock()
	for _, conn := range conns {
		conn.Close()
	}
}

// unplug takes the process off the network, or puts it back on.
func (p *process) unplug(off bool) {
	p.net.Refuse(off)
	if off {
		p.net.Cut()
	}
}

// lock locks a mutex or fails the test.
func (w *world) lock(ctx context.Context, m lease.Locker) *lease.Lease {
	w.t.Helper()
	l, err := m.Lock(ctx)
	if err != nil {
		w.t.Fatalf("at %v: %v", w.now(), err)
	}
	return l
}

// release releases a lease or fails the test.
func (w *world) release(l *lease.Lease) {
	w.t.Helper()
	if err := l.Release(w.t.Context()); err != nil {
		w.t.Errorf("at %v: %v", w.now(), err)
	}
}

// attempt is a call under way on a goroutine of its own.
type attempt struct {
	done  chan struct{}
	lease *lease.Lease
	err   error
	at    time.Duration // when it returned
}

// goLock locks on a goroutine of its own.
func (w *world) goLock(ctx context.Context, m lease.Locker) *attempt {
	return w.try(func() (*lease.Lease, error) { return m.Lock(ctx) })
}

// try calls f on a goroutine of its own.
func (w *world) try(f func() (*lease.Lease, error)) *attempt {
	a := &attempt{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.lease, a.err = f()
		a.at = w.now()
	}()
	return a
}

// result waits for an attempt.
func (a *attempt) result() (*lease.Lease, error) {
	<-a.done
	return a.lease, a.err
}

// pending says whether an attempt has not returned yet.
func (a *attempt) pending() bool {
	synctest.Wait()
	select {
	case <-a.done:
		return false
	default:
		return true
	}
}

// wantErr fails the test unless err matches each target.
func wantErr(t *testing.T, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("error %v, want one that matches %q", err, target)
		}
	}
}

// wantEnd fails the test unless ctx ended with that cause.
func wantEnd(t *testing.T, ctx context.Context, cause error) {
	t.Helper()
	if cause == nil {
		if ctx.Err() != nil {
			t.Errorf("the context has ended: %v", context.Cause(ctx))
		}
		return
	}
	if ctx.Err() == nil {
		t.Errorf("the context has not ended, want %v", cause)
		return
	}
	wantErr(t, context.Cause(ctx), cause)
}

// within fails the test unless d is from least to most.
func within(t *testing.T, what string, d, least, most time.Duration) {
	t.Helper()
	if d < least || d > most {
		t.Errorf("%s: %v, want from %v to %v", what, d, least, most)
	}
}
