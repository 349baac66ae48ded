// A server cannot serve for a while: holders keep what they hold, and callers wait or give up. A server
// that cannot serve for longer than a lease, or loses its data, costs the holders their leases, and they
// are notified. How soon is a matter of virtual time.

package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// keptLease is the length of leases that last, however long the machine stands still.
const keptLease = 10 * time.Second

// outages are the ways in which a server cannot serve for 0.6 s.
var outages = []struct {
	name   string
	args   []string
	strike func(t *testing.T, s *redistest.Proc)
}{
	{"read only", nil, func(t *testing.T, s *redistest.Proc) {
		do(t, s, "REPLICAOF", "127.0.0.1", "1") // no server is there, so s keeps its data
		time.Sleep(outage)
		do(t, s, "REPLICAOF", "NO", "ONE")
	}},
	{"loading", []string{"--key-load-delay", "200", "--loading-process-events-interval-bytes", "1024"},
		func(t *testing.T, s *redistest.Proc) {
			fill(t, s, 1500)
			s.Restart(true)
		}},
	{"restarted", []string{"--appendonly", "yes", "--appendfsync", "always"},
		func(t *testing.T, s *redistest.Proc) { s.Restart(true) }},
	{"busy script", []string{"--lua-time-limit", "100"}, func(t *testing.T, s *redistest.Proc) {
		var wg sync.WaitGroup
		busy := s.Client(t)
		wg.Go(func() { _ = busy.Eval(context.Background(), "while true do end", nil).Err() })
		time.Sleep(outage)
		killScript(t, s)
		wg.Wait()
		_ = busy.Close()
	}},
	{"paused", nil, func(t *testing.T, s *redistest.Proc) { pause(t, s, "ALL") }},
	{"writes paused", nil, func(t *testing.T, s *redistest.Proc) { pause(t, s, "WRITE") }},
	{"frozen", nil, func(t *testing.T, s *redistest.Proc) {
		s.Freeze()
		time.Sleep(outage)
		s.Thaw()
	}},
	{"no connections", nil, func(t *testing.T, s *redistest.Proc) {
		do(t, s, "CONFIG", "SET", "maxclients", 1)
		do(t, s, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		time.Sleep(outage)
		do(t, s, "CONFIG", "SET", "maxclients", 1000)
	}},
}

const outage = 600 * time.Millisecond

func pause(t *testing.T, s *redistest.Proc, what string) {
	do(t, s, "CLIENT", "PAUSE", outage.Milliseconds(), what)
	time.Sleep(outage)
}

func TestOutages(t *testing.T) {
	for _, tc := range outages {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Server(t, tc.args...)
			if info := s.Admin().Info(t.Context(), "server").Val(); tc.name == "loading" && strings.Contains(info, "redis_version:6.") {
				t.Skip("before Redis 7 a server says LOADING only of large files")
			}
			clienttest.LeaveNothing(t, s.Admin(), "filler")
			holder, caller := clienttest.OpenClient(t, s.Client(t)), clienttest.OpenClient(t, s.Client(t))
			clienttest.GiveBack(t, clienttest.Grab(t, caller.Mutex("warm up")))
			leases := clienttest.GrabMany(t, holder, "through", 10, holdfast.Renewed(keptLease))
			for range redistest.Count(t, 10) {
				var callers sync.WaitGroup
				for i := range 5 {
					callers.Go(func() { caught(t, caller, i) })
				}
				tc.strike(t, s)
				callers.Wait()
				outlasted(t, s, leases)
			}
			clienttest.GiveBackAll(t, leases)
		})
	}
}

// caught lets a caller try, wait and give up in the outage that is about to begin.
func caught(t *testing.T, c *holdfast.Client, i int) {
	time.Sleep(outage / 3) // until the outage has begun
	redistest.Is(t, "TryLock of what is held", redistest.Err(c.Mutex("through0").TryLock(clienttest.Generous(t))), holdfast.ErrBusy)
	ctx := redistest.Within(t, 50*time.Millisecond+clienttest.UpTo(250*time.Millisecond))
	l, err := c.Mutex(fmt.Sprint("given up", i)).Lock(ctx)
	if err == nil {
		clienttest.GiveBack(t, l)
	} else if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Lock that gave up in the outage: %v", err)
	}
	clienttest.GiveBack(t, clienttest.Grab(t, c.Mutex("waited for")))
}

// outlasted fails the test unless the leases are renewed again, and are held in Redis.
func outlasted(t *testing.T, s *redistest.Proc, leases map[string]*holdfast.Lease) {
	t.Helper()
	renewed(t, leases)
	for name, l := range leases {
		clienttest.StillHeld(t, s.Admin(), name, l)
	}
}

// renewed waits until each of the leases has been renewed from now on.
func renewed(t *testing.T, leases map[string]*holdfast.Lease) {
	t.Helper()
	before := make(map[string]time.Time)
	for name, l := range leases {
		before[name] = l.Deadline()
	}
	redistest.Eventually(t, time.Minute, "all are renewed", func() error {
		for name, l := range leases {
			if err := l.Err(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if !l.Deadline().After(before[name]) {
				return fmt.Errorf("%s is not", name)
			}
		}
		return nil
	})
}

// lostLease waits for the end of a lease, and fails the test unless it was lost.
func lostLease(t *testing.T, l *holdfast.Lease) {
	t.Helper()
	select {
	case <-l.Done():
	case <-time.After(time.Minute):
		t.Fatal("the lease has not ended within a minute")
	}
	redistest.Is(t, "the lease ended with", l.Err(), holdfast.ErrLost)
}

// do runs a command as the administrator.
func do(t testing.TB, s *redistest.Proc, args ...any) {
	t.Helper()
	if err := s.Admin().Do(context.Background(), args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

// killScript ends a busy script. A go-redis client cannot do that: it opens connections with
// commands that a busy server refuses.
func killScript(t testing.TB, s *redistest.Proc) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	redistest.Must(t, err)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	reply := make([]byte, 100)
	n := 0
	if _, err = conn.Write([]byte("SCRIPT KILL\r\n")); err == nil {
		n, err = conn.Read(reply)
	}
	if err != nil || string(reply[:n]) != "+OK\r\n" {
		t.Fatalf("SCRIPT KILL: %q, %v", reply[:n], err)
	}
}

// fill gives the server n keys to load.
func fill(t testing.TB, s *redistest.Proc, n int) {
	t.Helper()
	_, err := s.Admin().Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range n {
			p.Set(t.Context(), fmt.Sprintf("filler%d", i), "some value to load", 0)
		}
		return nil
	})
	redistest.Must(t, err)
}
