// A server that takes long for each reply.

package faults

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// slowly has every command wait for d: before it is executed, or its reply.
var slowly = map[string]func(d time.Duration) redistest.Fault{
	"requests": redistest.Delay,
	"replies":  redistest.DelayReply,
}

// Each command takes long, and the program's own client would wait for it. A lock is granted, kept through
// four leases, taken by the next and released; whether the server was slow before the grant or became slow after.
func TestALeaseOutlastsASlowServer(t *testing.T) {
	for what, fault := range slowly {
		for _, took := range []time.Duration{300 * time.Millisecond, 1200 * time.Millisecond, 3 * time.Second, 8 * time.Second} {
			for _, since := range []string{"before", "after"} {
				if since == "after" && took > 3*time.Second {
					continue // it has to be seen once: that costs more than what is left of the lease
				}
				t.Run(fmt.Sprint(what, " take ", took, ", since ", since), func(t *testing.T) {
					redistest.Bubble(t, func(t *testing.T) {
						server := redistest.Mini(t)
						proxy := server.Proxy()
						c := clienttest.OpenClient(t, proxy.Client(t, func(o *redis.Options) { o.ReadTimeout = 10 * time.Second }))
						slow := func() {
							proxy.OnCommand(func(redistest.Command) redistest.Fault { return fault(took) })
						}
						if since == "before" {
							slow()
						}
						asking := redistest.Within(t, 10*time.Minute)
						l, err := c.Mutex("kept").Lock(asking)
						redistest.Must(t, err)
						slow()
						ctx := l.Context(t.Context())
						time.Sleep(2 * time.Minute)
						if ctx.Err() != nil {
							t.Fatalf("lost: %v", context.Cause(ctx))
						}
						next := make(chan error, 1)
						go func() { next <- turn(asking, c.Mutex("kept")) }()
						time.Sleep(time.Minute)
						released(t, took, l.Release(t.Context()))
						released(t, took, <-next)
						time.Sleep(20 * time.Second)
						if server.Exists("kept") {
							t.Error("the lock is still held")
						}
						proxy.OnCommand(nil)
					})
				})
			}
		}
	}
}

// released fails the test on the error of a Release, unless the server needed too long for it: then the Client
// goes on alone.
func released(t *testing.T, took time.Duration, err error) {
	t.Helper()
	if err != nil && (took < 3*time.Second || !errors.Is(err, holdfast.ErrUnavailable)) {
		t.Error("release:", err)
	}
}

// Each kind is used while each reply takes long, once the Client has found that out.
func TestEachKindIsServedBySlowServers(t *testing.T) {
	for kind, use := range uses() {
		for what, fault := range slowly {
			for _, took := range []time.Duration{1200 * time.Millisecond, 3 * time.Second} {
				t.Run(fmt.Sprint(kind, ", ", what, " take ", took), func(t *testing.T) {
					redistest.Bubble(t, func(t *testing.T) {
						server := redistest.Mini(t)
						proxy := server.Proxy()
						c := clienttest.OpenClient(t, proxy.Client(t, func(o *redis.Options) { o.ReadTimeout = 10 * time.Second }))
						proxy.OnCommand(func(redistest.Command) redistest.Fault { return fault(took) })
						ctx := redistest.Within(t, 5*time.Minute)
						redistest.Must(t, redistest.Err(c.Mutex("slow").Lock(ctx)))
						released(t, took, use(ctx, c, "k"))
						time.Sleep(20 * time.Second) // a release that took too long goes on
						proxy.OnCommand(nil)
						soon := redistest.Within(t, time.Second)
						if err := use(soon, clienttest.OpenClient(t, server.Client()), "k"); err != nil {
							t.Error("another:", err)
						}
					})
				})
			}
		}
	}
}

// For a while Redis answers nothing on any connection, and on those that were made until then for ever; on new
// ones it answers at once. A lease whose renewal falls into that time is kept, and a Lock that waits has its
// answer within two seconds.
func TestALeaseOutlastsDeadConnections(t *testing.T) {
	const length = 12 * time.Second
	for _, most := range []time.Duration{3 * time.Second, 10 * time.Second} {
		for outage := time.Second; outage <= 6*time.Second; outage += 500 * time.Millisecond {
			t.Run(fmt.Sprintf("of %v, ReadTimeout %v", outage, most), func(t *testing.T) {
				redistest.Bubble(t, func(t *testing.T) {
					proxy := redistest.Mini(t).Proxy()
					c := clienttest.OpenClient(t, proxy.Client(t, func(o *redis.Options) { o.ReadTimeout = most }))
					l, err := c.Mutex("kept", holdfast.Renewed(length)).Lock(t.Context())
					redistest.Must(t, err)
					ctx := l.Context(t.Context())
					time.Sleep(length/3 - length/60)
					over := time.Now().Add(outage)
					dead := make(map[int64]bool)
					var mu sync.Mutex
					proxy.OnCommand(func(cmd redistest.Command) redistest.Fault {
						mu.Lock()
						defer mu.Unlock()
						dead[cmd.Conn] = dead[cmd.Conn] || time.Now().Before(over)
						if dead[cmd.Conn] {
							return redistest.Silence
						}
						return redistest.Pass
					})
					other, err := c.Mutex("other").Lock(t.Context())
					if took := time.Since(over); err != nil || took > 2*time.Second {
						t.Errorf("another lock: %v, %v after the end", err, took)
					}
					time.Sleep(30 * time.Second)
					if ctx.Err() != nil {
						t.Errorf("lost: %v", context.Cause(ctx))
					}
					proxy.OnCommand(nil)
					redistest.Check(t, errors.Join(other.Release(t.Context()), l.Release(t.Context())))
				})
			})
		}
	}
}

// late is how long a goroutine that waits for the network is woken after what it waits for, in a process whose
// processor has ninety other things to do. Timers wake it at once.
const late = 900 * time.Millisecond

// starved is a connection of such a process.
type starved struct {
	net.Conn
	mu       sync.Mutex
	came     []byte
	err      error
	busy     *atomic.Bool
	deadline time.Time
	news     chan struct{} // holds one signal
	received sync.WaitGroup
}

// starve has the client's connections be such connections, once busy is true.
func starve(o *redis.Options, busy *atomic.Bool) {
	dial := o.Dialer
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if busy.Load() {
			time.Sleep(late)
		}
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		s := &starved{Conn: conn, busy: busy, news: make(chan struct{}, 1)}
		s.received.Go(s.receive)
		return s, nil
	}
}

func (s *starved) Close() error {
	defer s.received.Wait()
	return s.Conn.Close()
}

func (s *starved) receive() {
	for b := make([]byte, 4096); s.err == nil; {
		n, err := s.Conn.Read(b)
		if s.busy.Load() {
			time.Sleep(10 * time.Millisecond) // nothing else runs sooner
		}
		s.mu.Lock()
		s.came, s.err = append(s.came, b[:n]...), err
		s.mu.Unlock()
		select {
		case s.news <- struct{}{}:
		default:
		}
	}
}

func (s *starved) SetReadDeadline(t time.Time) error { s.deadline = t; return nil }

func (s *starved) SetDeadline(t time.Time) error {
	s.deadline = t
	return s.Conn.SetWriteDeadline(t)
}

// take returns what is there.
func (s *starved) take(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := copy(b, s.came)
	s.came = s.came[n:]
	if n > 0 {
		return n, nil
	}
	return 0, s.err
}

func (s *starved) Read(b []byte) (int, error) {
	n, err := s.take(b)
	if n > 0 || err != nil {
		return n, err
	}
	left := time.Duration(math.MaxInt64)
	if !s.deadline.IsZero() {
		left = time.Until(s.deadline)
	}
	over := time.After(left)
	select {
	case <-s.news:
	case <-over:
		return 0, os.ErrDeadlineExceeded
	}
	if !s.busy.Load() {
		return s.Read(b)
	}
	select {
	case <-time.After(late):
		return s.Read(b)
	case <-over:
		return 0, os.ErrDeadlineExceeded
	}
}

// A process that hears of each reply late keeps its short leases: it looks for itself.
func TestALeaseOutlastsAStarvedProcess(t *testing.T) {
	for _, length := range []time.Duration{1200 * time.Millisecond, 3 * time.Second, 6 * time.Second} {
		for what, first := range map[string]bool{"busy from the beginning": true, "busy once the locks are held": false} {
			t.Run(fmt.Sprintf("%v, %s", length, what), func(t *testing.T) {
				redistest.Bubble(t, func(t *testing.T) {
					var busy atomic.Bool
					busy.Store(first)
					c := clienttest.OpenClient(t, redistest.Mini(t).Proxy().Client(t, func(o *redis.Options) { starve(o, &busy) }))
					var leases []*holdfast.Lease
					for i := range 4 {
						l, err := c.Mutex(fmt.Sprint("kept ", i), holdfast.Renewed(length)).Lock(t.Context())
						redistest.Must(t, err)
						leases = append(leases, l)
					}
					busy.Store(true)
					time.Sleep(time.Minute)
					for i, l := range leases {
						if err := l.Release(t.Context()); err != nil {
							t.Errorf("lock %d: %v", i, err)
						}
					}
				})
			})
		}
	}
}
