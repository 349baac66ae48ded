// Package world is where tests of behaviour play: one Redis on virtual time, any number of processes
// that use it, and one onlooker. Only tests import it.
package world

import (
	"bytes"
	"context"
	"crypto/sha1"
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
	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/rlock"
)

// The scripts of the mutex, by the names that a sending carries, and the renewals of a read-write
// lock.
const (
	LockRun    = "lock"  // sent by a call that does not wait
	EnterRun   = "enter" // sent by a call that waits
	RecountRun = "recount"
	RenewRun   = "renew"
	ManyRun    = "renewmany" // renews several holds
	FreeRun    = "free"      // a release that assumes that nobody waits
	ReleaseRun = "release"   // any other release
	MoveRun    = "move"
	StateRun   = "state"

	WriteRenewRun = "rw renew"
	ReadRenewRun  = "rw read renew"
)

// name is the lock that most tests use. The other constants name its neighbours in Redis.
const (
	Name      = "myLock"
	TokenKey  = "redisson_lock_token:{myLock}"
	Channel   = "redisson_lock__channel:{myLock}"
	AllTokens = "redisson_lock_token:"
)

// World is one Redis in a synctest bubble. The world loads the scripts when it begins, so that
// every call is one EVALSHA.
type World struct {
	T       *testing.T
	Mini    *redistest.MiniServer
	Rdb     *redis.Client // the onlooker's
	Start   time.Time
	scripts map[string]string // sha or source to name

	Processes []*Process
}

// Play runs scene in a world of its own, on virtual time. After scene, play closes every process.
// Then no channel and no key except tokens may be left.
func Play(t *testing.T, scene func(t *testing.T, w *World)) {
	t.Helper()
	redistest.Bubble(t, func(t *testing.T) {
		w := &World{T: t, Mini: redistest.Mini(t), Start: time.Now(), scripts: make(map[string]string)}
		w.Rdb = w.Mini.Client()
		w.load()
		scene(t, w)
		for _, p := range w.Processes {
			p.Close()
		}
		redistest.LeftBehind(t, w.Rdb, AllTokens)
	})
}

// sources lists the files that make up each script of the mutex and of the read-write lock.
var sources = map[string][]string{
	LockRun:     {"internal/lockhash/lua/token.lua", "rlock/lua/lock.lua"},
	EnterRun:    {"internal/lockhash/lua/token.lua", "internal/lockhash/lua/queue.lua", "internal/lockhash/lua/enter.lua"},
	RecountRun:  {"internal/lockhash/lua/recount.lua"},
	RenewRun:    {"internal/lockhash/lua/renew.lua"},
	"renewmany": {"internal/lockhash/lua/renewmany.lua"},
	FreeRun:     {"internal/lockhash/lua/free.lua"},
	ReleaseRun:  {"internal/lockhash/lua/token.lua", "internal/lockhash/lua/queue.lua", "internal/lockhash/lua/release.lua"},
	MoveRun:     {"internal/lockhash/lua/move.lua"},
	StateRun:    {"internal/lockhash/lua/state.lua"},
	"stripes":   {"rlock/lua/stripes.lua"},

	"rw lock":         {"rwlock/lua/holders.lua", "rwlock/lua/marks.lua", "rwlock/lua/lock.lua"},
	"rw recount":      {"rwlock/lua/recount.lua"},
	WriteRenewRun:     {"rwlock/lua/renew.lua"},
	"rw release":      {"rwlock/lua/holders.lua", "rwlock/lua/marks.lua", "rwlock/lua/release.lua"},
	"rw read lock":    {"rwlock/lua/marks.lua", "rwlock/lua/rlock.lua"},
	"rw read recount": {"rwlock/lua/holders.lua", "rwlock/lua/rrecount.lua"},
	ReadRenewRun:      {"rwlock/lua/holders.lua", "rwlock/lua/rrenew.lua"},
	"rw read release": {"rwlock/lua/holders.lua", "rwlock/lua/marks.lua", "rwlock/lua/rrelease.lua"},
	"rw look":         {"rwlock/lua/holders.lua", "rwlock/lua/look.lua"},
}

// Crowd lets p find out that q waits for the lock. p remembers this for 10 s: in that time the
// releases of p look for waiters at once.
func (w *World) Crowd(p, q *Process) {
	w.T.Helper()
	l := w.Lock(w.T.Context(), p.MyLock)
	a := w.GoLock(w.T.Context(), q.MyLock)
	synctest.Wait()
	w.Release(l)
	next, err := a.Result()
	if err != nil {
		w.T.Fatal(err)
	}
	w.Release(next)
}

// load loads every script and records its name.
func (w *World) load() {
	w.T.Helper()
	for script, files := range sources {
		var source strings.Builder
		for _, file := range files {
			source.WriteString(doctest.Read(w.T, file))
		}
		sum := sha1.Sum([]byte(source.String()))
		w.scripts[hex.EncodeToString(sum[:])] = script
		w.scripts[source.String()] = script
		if err := w.Rdb.ScriptLoad(w.T.Context(), source.String()).Err(); err != nil {
			w.T.Fatalf("load %s: %v", script, err)
		}
	}
}

// At sleeps until d after the beginning.
func (w *World) At(d time.Duration) {
	w.T.Helper()
	if late := w.Now() - d; late > 0 {
		w.T.Fatalf("it is %v already, %v later than the test wants", w.Now(), late)
	}
	time.Sleep(d - w.Now())
	synctest.Wait()
}

// Stepped sets the server's clock to d ahead of all other clocks.
func (w *World) Stepped(d time.Duration) { w.Mini.SetTime(time.Now().Add(d)) }

// Step sets the server's clock to d ahead of all other clocks, and keeps it running, until the test
// calls the returned function.
func (w *World) Step(d time.Duration) (stop func()) {
	done := make(chan struct{})
	var ticker sync.WaitGroup
	ticker.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			w.Stepped(d)
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	})
	synctest.Wait()
	return func() { close(done); ticker.Wait(); synctest.Wait() }
}

// Now returns how long ago the world began.
func (w *World) Now() time.Duration { return time.Since(w.Start) }

// Pttl returns a key's time to live. -2 ns means that there is no key, -1 ns that the key never
// expires.
func (w *World) Pttl(key string) time.Duration {
	w.T.Helper()
	d, err := w.Rdb.PTTL(w.T.Context(), key).Result()
	if err != nil {
		w.T.Fatal(err)
	}
	return d
}

// Holders returns the fields of the lock's hash, sorted, each as "owner=count".
func (w *World) Holders(key string) []string {
	w.T.Helper()
	fields, err := w.Rdb.HGetAll(w.T.Context(), key).Result()
	if err != nil {
		w.T.Fatal(err)
	}
	var all []string
	for holder, count := range fields {
		all = append(all, holder+"="+count)
	}
	slices.Sort(all)
	return all
}

// WantTTL fails the test unless the lock's time to live is exactly d.
func (w *World) WantTTL(d time.Duration) {
	w.T.Helper()
	if got := w.Pttl(Name); got != d {
		w.T.Errorf("at %v: PTTL %v, want %v", w.Now(), got, d)
	}
}

// WantHolder fails the test unless owner alone holds the lock, with that count. For a count of 1 it
// also accepts 0: after a hand-over the new holder may not have set its count yet.
func (w *World) WantHolder(owner lease.Owner, count int) {
	w.T.Helper()
	want := []string{fmt.Sprintf("%s=%d", owner, count)}
	handed := []string{fmt.Sprintf("%s=0", owner)}
	if got := w.Holders(Name); !slices.Equal(got, want) && (count != 1 || !slices.Equal(got, handed)) {
		w.T.Errorf("at %v: held by %q, want %q", w.Now(), got, want)
	}
}

// WantFree fails the test if the lock's key exists.
func (w *World) WantFree() {
	w.T.Helper()
	if got := w.Pttl(Name); got != -2 {
		w.T.Errorf("at %v: still held by %q for %v", w.Now(), w.Holders(Name), got)
	}
}

// Messages subscribes to the channels. The function that it returns ends the subscription and
// returns the messages that came, each with its instant.
func (w *World) Messages(channels ...string) func() []string {
	w.T.Helper()
	ps := w.Rdb.Subscribe(context.Background(), channels...)
	for range channels {
		if _, err := ps.Receive(w.T.Context()); err != nil {
			w.T.Fatal(err)
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
			got = append(got, fmt.Sprintf("%v %s", w.Now(), m.Payload))
		}
	})
	return func() []string {
		synctest.Wait()
		ps.Close()
		done.Wait()
		return got
	}
}

// Process is one process of the world: a Client behind a network of its own.
type Process struct {
	*holdfast.Client
	W      *World
	Net    *redistest.FaultProxy
	MyLock *rlock.Mutex // named Name

	Mu    sync.Mutex
	Sent  []Sending
	rule  func(Sending) redistest.Fault
	conns []net.Conn    // the process's ends of its connections
	Quiet chan struct{} // while it is open, the process reads no message; nil: it reads all
}

// Sending is one run of a script on its way to Redis.
type Sending struct {
	Script string
	N      int           // counts the runs of that script, from 1
	At     time.Duration // since the beginning
	conn   int64
}

// Process starts a process.
func (w *World) Process(options ...holdfast.Option) *Process {
	w.T.Helper()
	p := &Process{W: w, Net: w.Mini.Proxy()}
	p.Net.OnCommand(p.Observe)
	p.Client = holdfast.New(p.Net.Client(w.T, func(o *redis.Options) { o.Dialer = p.dial }),
		append([]holdfast.Option{holdfast.WithLogger(redistest.Watched())}, options...)...)
	p.MyLock = p.Mutex(Name)
	w.Processes = append(w.Processes, p)
	w.T.Cleanup(func() { p.Close() })
	return p
}

// FarAway starts a process whose commands take rtt. Opening a connection takes three times as long,
// for TCP and TLS.
func (w *World) FarAway(rtt time.Duration) *Process {
	p := &Process{W: w, Net: w.Mini.Proxy()}
	p.Net.OnCommand(func(c redistest.Command) redistest.Fault {
		p.Observe(c)
		return redistest.Delay(rtt)
	})
	p.Client = holdfast.New(p.Net.Client(w.T, func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			time.Sleep(3 * rtt)
			return p.dial(ctx, network, addr)
		}
	}))
	p.MyLock = p.Mutex(Name)
	w.Processes = append(w.Processes, p)
	w.T.Cleanup(func() { p.Close() })
	return p
}

// Observe notes a run of a script and asks the rule for the fault that the run meets.
func (p *Process) Observe(c redistest.Command) redistest.Fault {
	if len(c.Args) == 0 {
		return redistest.Pass
	}
	script := p.W.scripts[c.Args[0]]
	if script == "" {
		return redistest.Pass
	}
	p.Mu.Lock()
	s := Sending{Script: script, N: 1, At: p.W.Now(), conn: c.Conn}
	for _, earlier := range p.Sent {
		if earlier.Script == script {
			s.N++
		}
	}
	p.Sent = append(p.Sent, s)
	rule := p.rule
	p.Mu.Unlock()
	if rule == nil {
		return redistest.Pass
	}
	return rule(s)
}

// On sets the fault for the n-th run of a script, counted from now. Every other run passes.
func (p *Process) On(script string, n int, fault redistest.Fault) {
	before := p.Runs(script)
	p.Each(func(s Sending) redistest.Fault {
		if s.Script == script && s.N == before+n {
			return fault
		}
		return redistest.Pass
	})
}

// Each sets the rule that decides about each run of a script. With nil, every run passes.
func (p *Process) Each(rule func(Sending) redistest.Fault) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.rule = rule
}

// Runs counts how often a script was sent; "" counts all.
func (p *Process) Runs(script string) int { return len(p.Times(script)) }

// Times returns when a script was sent.
func (p *Process) Times(script string) []time.Duration {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	var all []time.Duration
	for _, s := range p.Sent {
		if script == "" || s.Script == script {
			all = append(all, s.At)
		}
	}
	return all
}

// dial connects the process.
func (p *Process) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := p.Net.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.conns = append(p.conns, conn)
	return &hearing{Conn: conn, p: p}, nil
}

// hearing is a process's end of a connection. Messages may come on that connection.
type hearing struct {
	net.Conn
	p          *Process
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
		h.p.Mu.Lock()
		quiet := h.p.Quiet
		h.p.Mu.Unlock()
		if quiet != nil {
			<-quiet
		}
	}
	return n, err
}

// Mute stops the process from reading messages until unmute.
func (p *Process) Mute() {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if p.Quiet == nil {
		p.Quiet = make(chan struct{})
	}
}

func (p *Process) Unmute() {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if p.Quiet != nil {
		close(p.Quiet)
		p.Quiet = nil
	}
}

// Forget clears the record of what the process has sent.
func (p *Process) Forget() {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.Sent = nil
}

// HangUp closes the process's ends of its connections. What the process has sent still arrives, but
// the process hears no answer.
func (p *Process) HangUp() {
	p.Mu.Lock()
	conns := p.conns
	p.conns = nil
	p.Mu.Unlock()
	for _, conn := range conns {
		conn.Close()
	}
}

// Unplug takes the process off the network, or puts it back on.
func (p *Process) Unplug(off bool) {
	p.Net.Refuse(off)
	if off {
		p.Net.Cut()
	}
}

// Lock locks a mutex or fails the test.
func (w *World) Lock(ctx context.Context, m lease.Locker) *lease.Lease {
	w.T.Helper()
	l, err := m.Lock(ctx)
	if err != nil {
		w.T.Fatalf("at %v: %v", w.Now(), err)
	}
	return l
}

// Release releases a lease or fails the test.
func (w *World) Release(l *lease.Lease) {
	w.T.Helper()
	if err := l.Release(w.T.Context()); err != nil {
		w.T.Errorf("at %v: %v", w.Now(), err)
	}
}

// Attempt is a call under way on a goroutine of its own.
type Attempt struct {
	Done  chan struct{}
	lease *lease.Lease
	err   error
	At    time.Duration // when it returned
}

// GoLock locks on a goroutine of its own.
func (w *World) GoLock(ctx context.Context, m lease.Locker) *Attempt {
	return w.Try(func() (*lease.Lease, error) { return m.Lock(ctx) })
}

// Try calls f on a goroutine of its own.
func (w *World) Try(f func() (*lease.Lease, error)) *Attempt {
	a := &Attempt{Done: make(chan struct{})}
	go func() {
		defer close(a.Done)
		a.lease, a.err = f()
		a.At = w.Now()
	}()
	return a
}

// Result waits for an attempt.
func (a *Attempt) Result() (*lease.Lease, error) {
	<-a.Done
	return a.lease, a.err
}

// Pending says whether an attempt has not returned yet.
func (a *Attempt) Pending() bool {
	synctest.Wait()
	select {
	case <-a.Done:
		return false
	default:
		return true
	}
}

// WantErr fails the test unless err matches each target.
func WantErr(t *testing.T, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("error %v, want one that matches %q", err, target)
		}
	}
}

// WantEnd fails the test unless ctx ended with that cause.
func WantEnd(t *testing.T, ctx context.Context, cause error) {
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
	WantErr(t, context.Cause(ctx), cause)
}

// Within fails the test unless d is from least to most.
func Within(t *testing.T, what string, d, least, most time.Duration) {
	t.Helper()
	if d < least || d > most {
		t.Errorf("%s: %v, want from %v to %v", what, d, least, most)
	}
}
