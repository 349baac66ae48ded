// A process: a Client behind a network of its own, which a test can fail.

package world

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

// Process is one process of the world: a Client behind a network of its own.
type Process struct {
	*holdfast.Client
	W      *World
	Net    *redistest.FaultProxy
	MyLock *rlock.Mutex // named Name

	mu    sync.Mutex
	sent  []Sending
	rule  func(Sending) redistest.Fault
	conns []net.Conn    // the process's ends of its connections
	quiet chan struct{} // while it is open, the process reads no message; nil: it reads all
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
	return w.start(0, options...)
}

// FarAway starts a process that hears from Redis after rtt. Opening a connection takes three times as long,
// for TCP and TLS.
func (w *World) FarAway(rtt time.Duration) *Process {
	w.T.Helper()
	return w.start(rtt)
}

// start starts a process that is rtt away when it opens a connection.
func (w *World) start(rtt time.Duration, options ...holdfast.Option) *Process {
	w.T.Helper()
	p := &Process{W: w, Net: w.Mini.Proxy(redistest.Lagging(rtt/2, 0))}
	p.Net.OnCommand(p.Observe)
	rdb := p.Net.Client(w.T, func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			time.Sleep(3 * rtt)
			return p.dial(ctx, network, addr)
		}
	})
	p.Client = holdfast.New(rdb, append([]holdfast.Option{holdfast.WithLogger(redistest.Watched())}, options...)...)
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
	p.mu.Lock()
	s := Sending{Script: script, N: 1, At: p.W.Now(), conn: c.Conn}
	for _, earlier := range p.sent {
		if earlier.Script == script {
			s.N++
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

// Always sets the fault for every run of a script from now on. Runs of others pass.
func (p *Process) Always(script string, fault redistest.Fault) {
	p.Each(func(s Sending) redistest.Fault {
		if s.Script == script {
			return fault
		}
		return redistest.Pass
	})
}

// Each sets the rule that decides about each run of a script. With nil, every run passes.
func (p *Process) Each(rule func(Sending) redistest.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = rule
}

// Runs counts how often a script was sent; "" counts all.
func (p *Process) Runs(script string) int { return len(p.Times(script)) }

// Times returns when a script was sent.
func (p *Process) Times(script string) []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []time.Duration
	for _, s := range p.sent {
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
	p.mu.Lock()
	defer p.mu.Unlock()
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
		h.p.mu.Lock()
		quiet := h.p.quiet
		h.p.mu.Unlock()
		if quiet != nil {
			<-quiet
		}
	}
	return n, err
}

// Mute stops the process from reading messages until unmute.
func (p *Process) Mute() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.quiet == nil {
		p.quiet = make(chan struct{})
	}
}

// Muted says whether the process reads no messages.
func (p *Process) Muted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.quiet != nil
}

// Unmute lets the process read messages again.
func (p *Process) Unmute() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.quiet != nil {
		close(p.quiet)
		p.quiet = nil
	}
}

// Forget clears the record of what the process has sent.
func (p *Process) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = nil
}

// HangUp closes the process's ends of its connections. What the process has sent still arrives, but
// the process hears no answer.
func (p *Process) HangUp() {
	p.mu.Lock()
	conns := p.conns
	p.conns = nil
	p.mu.Unlock()
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
