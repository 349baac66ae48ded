// Redis refuses for good, and callers are told at once, or Redis refuses for a while, and callers
// wait.

package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	redistest.Undisturbed(t, 100*time.Millisecond, func(t testing.TB) {
		s := redistest.Server(t)
		clienttest.LeaveNothing(t, s.Admin())
		ctx := clienttest.Generous(t)
		c := clienttest.OpenClient(t, s.Client(t))
		m := c.Mutex("full", holdfast.Renewed(600*time.Millisecond))
		outer := clienttest.Grab(t, m)
		inner, err := m.Lock(outer.Context(ctx))
		if err != nil {
			t.Fatal(err)
		}
		innermost, err := m.Lock(inner.Context(ctx))
		if err != nil {
			t.Fatal(err)
		}
		fixed := clienttest.Grab(t, c.Mutex("full too", holdfast.Fixed(10*time.Second)))
		if err := s.Admin().ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
			t.Fatal(err)
		}

		refusals := redistest.Count(t, 1000)
		for i := range refusals {
			name := fmt.Sprintf("refused%d", i%10)
			if _, err := c.Mutex(name).Lock(ctx); !errors.Is(err, holdfast.ErrOutOfMemory) {
				t.Fatalf("Lock = %v, want ErrOutOfMemory", err)
			}
			if n := s.Admin().Exists(ctx, name, "redisson_lock_token:{"+name+"}").Val(); n != 0 {
				redistest.Inexcusable(t, "a Lock that was refused left %d keys", n)
				return
			}
		}
		steps := redistest.Count(t, 1000)
		for i := range steps {
			if err := fixed.Extend(ctx, 10*time.Second+time.Duration(i)*time.Second); err != nil {
				t.Fatalf("Extend: %v", err)
			}
			s.FlushScripts() // so that the client sends the whole source
			if err := fixed.Extend(ctx, 20*time.Second); err != nil {
				t.Fatalf("Extend after SCRIPT FLUSH: %v", err)
			}
		}
		time.Sleep(time.Second)
		clienttest.StillHeld(t, s.Admin(), "full", outer)
		clienttest.GiveBack(t, innermost)
		if n, err := m.HoldCount(ctx, outer.Owner()); err != nil || n != 2 {
			t.Errorf("HoldCount = %d, %v, want 2", n, err)
		}
		clienttest.GiveBack(t, outer, inner, fixed)
		if err := s.Admin().ConfigSet(ctx, "maxmemory", "0").Err(); err != nil {
			t.Fatal(err)
		}
		clienttest.Figure(t, "out of memory: %d Locks refused with nothing left, %d Extends, renewals and releases went on", refusals, 2*steps)
	})
}

func TestKeyOfAnotherType(t *testing.T) {
	t.Parallel()
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin(), "taken")
	p := redistest.FeelPulse(t)
	c := clienttest.OpenClient(t, s.Client(t))
	ctx := clienttest.Generous(t)
	s.Admin().Set(ctx, "taken by a string", "value", time.Hour)
	s.Admin().SAdd(ctx, "taken by a set", "member")
	s.Admin().RPush(ctx, "taken by a list", "element")
	before := redistest.Snapshot(t, s.Admin())
	for _, name := range []string{"taken by a string", "taken by a set", "taken by a list"} {
		if _, err := c.Mutex(name).Lock(ctx); !errors.Is(err, holdfast.ErrWrongType) {
			t.Errorf("Lock = %v, want ErrWrongType", err)
		}
		if _, err := c.Mutex(name).TryLock(ctx); !errors.Is(err, holdfast.ErrWrongType) {
			t.Errorf("TryLock = %v, want ErrWrongType", err)
		}
	}
	if after := redistest.Snapshot(t, s.Admin()); after != before {
		t.Errorf("the keys changed:\n%s\nwere\n%s", after, before)
	}

	// Another program takes a key from under its holder.
	l := clienttest.Grab(t, c.Mutex("taken later", holdfast.Renewed(600*time.Millisecond)))
	s.Admin().Set(ctx, "taken later", "value", time.Hour)
	value := s.Admin().Dump(ctx, "taken later").Val()
	clienttest.LostBy(t, p, l, l.Deadline())
	if err := l.Release(ctx); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("Release = %v, want ErrLost", err)
	}
	if got := s.Admin().Dump(ctx, "taken later").Val(); got != value {
		t.Errorf("the holder changed the foreign key")
	}
}

func TestDenied(t *testing.T) {
	t.Parallel()
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	for _, tc := range []struct {
		name  string
		rules []string
	}{
		{"noscripts", []string{"~*", "&*", "+@all", "-@scripting"}},
		{"nohset", []string{"~*", "&*", "+@all", "-hset"}},
		{"nopexpire", []string{"~*", "&*", "+@all", "-pexpire"}},
		{"nokey", []string{"~other:*", "&*", "+@all"}},
		{"notoken", []string{"~denied*", "&*", "+@all"}},
		{"noset", []string{"~*", "&*", "+@all", "-set"}},
		{"nothing", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := clienttest.OpenClient(t, s.Client(t, clienttest.User(t, s, tc.name, tc.rules...)))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if _, err := c.Mutex("denied").Lock(ctx); !errors.Is(err, holdfast.ErrDenied) {
				t.Errorf("Lock = %v, want ErrDenied", err)
			}
			if n := s.Admin().Exists(ctx, "denied").Val(); n != 0 {
				t.Error("a lock stands that was denied")
			}
		})
	}
}

// A user that may neither publish nor subscribe locks, waits and releases all the same.
func TestDeniedChannels(t *testing.T) {
	t.Parallel()
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	p := redistest.FeelPulse(t)
	for _, tc := range []struct {
		name  string
		rules []string
	}{
		{"nochannels", []string{"~*", "resetchannels", "+@all"}},
		{"nopublish", []string{"~*", "&*", "+@all", "-publish", "-subscribe"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			as := clienttest.User(t, s, tc.name, tc.rules...)
			a, b := clienttest.OpenClient(t, s.Client(t, as)), clienttest.OpenClient(t, s.Client(t, as))
			l := clienttest.Grab(t, a.Mutex("quiet"))
			var wg sync.WaitGroup
			granted := make(chan time.Time, 1)
			wg.Go(func() {
				l, err := b.Mutex("quiet").Lock(clienttest.Generous(t))
				granted <- time.Now()
				if err != nil {
					t.Errorf("Lock: %v", err)
					return
				}
				clienttest.GiveBack(t, l)
			})
			time.Sleep(100*time.Millisecond + clienttest.UpTo(time.Second))
			released := time.Now()
			clienttest.GiveBack(t, l)
			if l.Err() == nil {
				t.Error("a released lease has no error")
			}
			if n := s.Admin().HExists(t.Context(), "quiet", l.Owner().String()).Val(); n {
				t.Error("Release says that it released, and the lock is held")
			}
			at := <-granted
			if d := at.Sub(released); d > pollBound+p.Slack(released, at) {
				t.Errorf("granted %v after the release", d)
			}
			wg.Wait()
		})
	}
}

func TestNoPassword(t *testing.T) {
	t.Parallel()
	s := redistest.Server(t, "--requirepass", "secret")
	clienttest.LeaveNothing(t, s.Client(t, func(o *redis.Options) { o.Password = "secret" }))
	for _, tc := range []struct{ name, username, password string }{
		{"none", "", ""},
		{"wrong", "", "guess"},
		{"unknown user", "nobody", "guess"},
	} {
		for _, protocol := range []int{2, 3} {
			t.Run(fmt.Sprintf("%s RESP%d", tc.name, protocol), func(t *testing.T) {
				c := clienttest.OpenClient(t, s.Client(t, func(o *redis.Options) {
					o.Username, o.Password, o.Protocol = tc.username, tc.password, protocol
				}))
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				if _, err := c.Mutex("locked out").Lock(ctx); !errors.Is(err, holdfast.ErrDenied) {
					t.Errorf("Lock = %v, want ErrDenied", err)
				}
			})
		}
	}
}

// outageLease is the length of a lease that outlives the outages of about 0.6 s, but not by much.
const outageLease = 2 * time.Second

// outage is a server that cannot serve for a while, with holders in one process
// and callers in another.
type outage struct {
	t              testing.TB
	s              *redistest.Proc
	p              *redistest.Pulse
	holder, caller *holdfast.Client
	strike         func(testing.TB, *redistest.Proc) // returns when the outage is over
	recovery       time.Duration                     // a waiting Lock is granted this soon after

	recovered, cancelled clienttest.Spread
	slow                 int // outages that lasted too long for their leases
}

// While Redis cannot serve for a while, holders keep what they hold, callers wait, and callers that
// give up return at once.
func TestOutages(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		args     []string
		recovery time.Duration
		strike   func(t testing.TB, s *redistest.Proc)
	}{
		{"read only", nil, time.Second, func(t testing.TB, s *redistest.Proc) {
			do(t, s, "REPLICAOF", "127.0.0.1", "1") // no server is there, so s keeps its data
			time.Sleep(600 * time.Millisecond)
			do(t, s, "REPLICAOF", "NO", "ONE")
		}},
		{"loading", []string{"--key-load-delay", "200", "--loading-process-events-interval-bytes", "1024"}, 500 * time.Millisecond,
			func(t testing.TB, s *redistest.Proc) { s.Restart(true) }},
		{"busy script", []string{"--busy-reply-threshold", "100"}, 500 * time.Millisecond, func(t testing.TB, s *redistest.Proc) {
			var wg sync.WaitGroup
			busy := s.Client(t)
			wg.Go(func() { _ = busy.Eval(context.Background(), "while true do end", nil).Err() })
			time.Sleep(600 * time.Millisecond)
			killScript(t, s)
			wg.Wait()
			_ = busy.Close()
		}},
		{"paused", nil, 500 * time.Millisecond, func(t testing.TB, s *redistest.Proc) {
			do(t, s, "CLIENT", "PAUSE", "600", "ALL")
			time.Sleep(600 * time.Millisecond)
		}},
		{"writes paused", nil, 500 * time.Millisecond, func(t testing.TB, s *redistest.Proc) {
			do(t, s, "CLIENT", "PAUSE", "600", "WRITE")
			time.Sleep(600 * time.Millisecond)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			redistest.Undisturbed(t, outageLease/10, func(t testing.TB) {
				s := redistest.Server(t, tc.args...)
				clienttest.LeaveNothing(t, s.Admin(), "filler")
				fill(t, s, 1500)
				o := &outage{t: t, s: s, p: redistest.FeelPulse(t), strike: tc.strike, recovery: tc.recovery}
				o.holder, o.caller = clienttest.OpenClient(t, s.Client(t)), clienttest.OpenClient(t, s.Client(t))
				clienttest.GiveBack(t, clienttest.Grab(t, o.caller.Mutex("warm up")))
				rounds := redistest.Count(t, 20)
				for counted := 0; counted < rounds; {
					if o.round(rounds) {
						counted++
					}
				}
				clienttest.Figure(t, "%s for 0.6 s, %d times: holds of %v kept, cancelled Locks return after %v, a waiting Lock granted %v after the end",
					tc.name, rounds, outageLease, &o.cancelled, &o.recovered)
			})
		})
	}
}

// round plays one outage, and says whether the outage was over in time for the leases.
func (o *outage) round(rounds int) bool {
	t := o.t
	leases := clienttest.GrabMany(t, o.holder, "through", 10, holdfast.Renewed(outageLease))
	taken := clienttest.Grab(t, o.holder.Mutex("taken"))
	time.Sleep(clienttest.UpTo(outageLease / 3))
	began := time.Now()
	granted, callers := o.call()
	o.strike(t, o.s)
	over := time.Now()
	at := <-granted
	if at.After(over) {
		o.recovered.Add(at.Sub(over))
	}
	if d := at.Sub(over); d > o.recovery+o.p.Slack(over, at) {
		t.Errorf("granted %v after the end of the outage", d)
	}
	callers.Wait()
	time.Sleep(outageLease / 2) // long enough for the next renewals
	clienttest.GiveBack(t, taken)
	if lasted := over.Sub(began); lasted > outageLease*6/10 {
		releaseAnyway(t, leases)
		clienttest.MoreAttempts(t, &o.slow, rounds, "the outage lasted %v", lasted)
		return false
	}
	for name, l := range leases {
		clienttest.StillHeld(t, o.s.Admin(), name, l)
	}
	clienttest.GiveBackAll(t, leases)
	return true
}

// call lets callers try, wait and give up in the outage that is about to begin. It returns a
// channel that gets the instant of the waiter's grant, and a WaitGroup that waits for all callers.
func (o *outage) call() (granted <-chan time.Time, callers *sync.WaitGroup) {
	t, at, wg := o.t, make(chan time.Time, 1), new(sync.WaitGroup)
	wg.Go(func() {
		time.Sleep(150 * time.Millisecond) // until the outage has begun
		if _, err := o.caller.Mutex("taken").TryLock(clienttest.Generous(t)); !errors.Is(err, holdfast.ErrBusy) {
			t.Errorf("TryLock of what is held = %v, want ErrBusy", err)
		}
	})
	for range 5 {
		wg.Go(func() {
			time.Sleep(200 * time.Millisecond)
			giveUp := &canceller{t: t, client: o.caller, pulse: o.p, keep: true}
			giveUp.try(fmt.Sprintf("given up%d", clienttest.UpTo(1<<40)), 50*time.Millisecond+clienttest.UpTo(250*time.Millisecond))
			for _, d := range giveUp.returns.All {
				o.cancelled.Add(d)
			}
			giveUp.releaseKept()
		})
	}
	wg.Go(func() {
		time.Sleep(200 * time.Millisecond)
		l, err := o.caller.Mutex("free").Lock(clienttest.Generous(t))
		at <- time.Now()
		if err != nil {
			t.Errorf("Lock through the outage: %v", err)
			return
		}
		clienttest.GiveBack(t, l)
	})
	return at, wg
}

// releaseAnyway releases leases that may have been lost.
func releaseAnyway(t testing.TB, leases map[string]*holdfast.Lease) {
	for _, l := range leases {
		if err := l.Release(t.Context()); err != nil && !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("Release: %v", err)
		}
	}
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
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	reply := make([]byte, 100)
	_, err = conn.Write([]byte("SCRIPT KILL\r\n"))
	if err == nil {
		var n int
		n, err = conn.Read(reply)
		reply = reply[:n]
	}
	if err != nil || string(reply) != "+OK\r\n" {
		t.Fatalf("SCRIPT KILL: %q, %v", reply, err)
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
	if err != nil {
		t.Fatal(err)
	}
}

// The server lets in no new connection. Renewals go on over the existing connections, and a Lock
// that needs a new connection waits.
func TestNoConnectionsLeft(t *testing.T) {
	t.Parallel()
	redistest.Undisturbed(t, 100*time.Millisecond, func(t testing.TB) {
		const length = 600 * time.Millisecond
		s := redistest.Server(t)
		clienttest.LeaveNothing(t, s.Admin())
		c, other := clienttest.OpenClient(t, s.Client(t)), clienttest.OpenClient(t, s.Client(t))
		leases := clienttest.GrabMany(t, c, "storm", 20, holdfast.Renewed(length))
		time.Sleep(length / 2) // they have been renewed once
		list, err := s.Admin().ClientList(t.Context()).Result()
		if err != nil || list == "" {
			t.Fatal(err)
		}
		do(t, s, "CONFIG", "SET", "maxclients", 1)
		granted := make(chan error, 1)
		go func() {
			l, err := other.Mutex("late").Lock(clienttest.Generous(t))
			if err == nil {
				err = l.Release(clienttest.Generous(t))
			}
			granted <- err
		}()
		time.Sleep(4 * length)
		for name, l := range leases {
			clienttest.StillHeld(t, s.Admin(), name, l)
		}
		select {
		case err := <-granted:
			t.Errorf("Lock without a connection returned %v", err)
		default:
		}
		do(t, s, "CONFIG", "SET", "maxclients", 1000)
		if err := <-granted; err != nil {
			t.Errorf("Lock when connections are let in again: %v", err)
		}
		clienttest.GiveBackAll(t, leases)
	})
}

// The locks work even if the user's own pool is exhausted.
func TestUsersPoolExhausted(t *testing.T) {
	t.Parallel()
	const length = 3 * time.Second
	p := redistest.FeelPulse(t)
	s := redistest.Server(t)
	rdb := s.Client(t, func(o *redis.Options) { o.PoolSize, o.MaxRetries = 1, -1 })
	clienttest.LeaveNothing(t, s.Admin())
	var blocked sync.WaitGroup
	for range 3 {
		blocked.Go(func() { _ = rdb.BLPop(context.Background(), 0, "nothing comes here").Err() })
	}
	t.Cleanup(blocked.Wait)
	t.Cleanup(func() { _ = rdb.Close() })
	redistest.Eventually(t, 10*time.Second, "the pool is exhausted", func() error {
		if stats := rdb.PoolStats(); stats.TotalConns != 1 || stats.IdleConns != 0 {
			return fmt.Errorf("%+v", stats)
		}
		return nil
	})
	c := clienttest.OpenClient(t, rdb)
	asked := time.Now()
	leases := clienttest.GrabMany(t, c, "pool", 20, holdfast.Renewed(length))
	p.Within(t, "the locks beside an exhausted pool", asked, 2*time.Second)
	time.Sleep(2 * length) // a lease without renewals is lost by then
	for name, l := range leases {
		clienttest.StillHeld(t, s.Admin(), name, l)
	}
	clienttest.GiveBackAll(t, leases)
	do(t, s, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") // lets the owner of the pool go
}
