// Redis refuses for good, and callers are told at once.

package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// What is held goes on without memory, even after the server has forgotten the scripts, so that the Client
// sends them whole.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	ctx := clienttest.Generous(t)
	c := clienttest.OpenClient(t, s.Client(t))
	leases := clienttest.GrabMany(t, c, "full", 10, holdfast.Renewed(keptLease))
	do(t, s, "CONFIG", "SET", "maxmemory", "1")
	for i := range redistest.Count(t, 1000) {
		name := fmt.Sprint("refused", i%10)
		if _, err := c.Mutex(name).Lock(ctx); !errors.Is(err, holdfast.ErrOutOfMemory) {
			t.Fatalf("Lock = %v, want ErrOutOfMemory", err)
		}
		if n := s.Admin().Exists(ctx, name, "redisson_lock_token:{"+name+"}").Val(); n != 0 {
			t.Fatalf("a Lock that was refused left %d keys", n)
		}
		s.FlushScripts()
		if err := leases["full0"].Extend(ctx, keptLease+time.Duration(i)*time.Second); err != nil {
			t.Fatalf("Extend: %v", err)
		}
	}
	clienttest.GiveBack(t, leases["full0"])
	delete(leases, "full0")
	outlasted(t, s, leases)
	clienttest.GiveBackAll(t, leases)
	do(t, s, "CONFIG", "SET", "maxmemory", "0")
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
		for _, protocol := range []int{2, 3} {
			t.Run(fmt.Sprint(tc.name, protocol), func(t *testing.T) {
				as := clienttest.User(t, s, tc.name, tc.rules...)
				denied(t, s, func(o *redis.Options) { as(o); o.Protocol = protocol })
				denied(t, s, func(o *redis.Options) { o.Username, o.Password, o.Protocol = tc.name, "guess", protocol })
			})
		}
	}
}

// denied fails the test unless such a client is not granted a lock.
func denied(t *testing.T, s *redistest.Proc, as func(*redis.Options)) {
	t.Helper()
	c := clienttest.OpenClient(t, s.Client(t, as))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.Mutex("denied").Lock(ctx); !errors.Is(err, holdfast.ErrDenied) {
		t.Errorf("Lock = %v, want ErrDenied", err)
	}
	if n := s.Admin().Exists(ctx, "denied").Val(); n != 0 {
		t.Error("a lock is held that was denied")
	}
}

// A user that may neither publish nor subscribe locks, waits and releases all the same.
func TestDeniedChannels(t *testing.T) {
	t.Parallel()
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	for name, rules := range map[string][]string{
		"nochannels": {"~*", "resetchannels", "+@all"},
		"nopublish":  {"~*", "&*", "+@all", "-publish", "-subscribe"},
	} {
		t.Run(name, func(t *testing.T) {
			as := clienttest.User(t, s, name, rules...)
			a, b := clienttest.OpenClient(t, s.Client(t, as)), clienttest.OpenClient(t, s.Client(t, as))
			l := clienttest.Grab(t, a.Mutex("quiet"))
			next, err := beside(func() (*holdfast.Lease, error) { return b.Mutex("quiet").Lock(clienttest.Generous(t)) },
				func() error { return l.Release(clienttest.Generous(t)) })
			if err != nil {
				t.Fatal(err)
			}
			clienttest.GiveBack(t, next)
		})
	}
}
