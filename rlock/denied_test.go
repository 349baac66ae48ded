// This file is about what a real server refuses: it has no memory left, or the user has no rights.

package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// A server without free memory grants nothing new. A lock that is held is still renewed, nested,
// detached, attached and released.
func TestInput_OutOfMemory(t *testing.T) {
	server := redistest.Server(t)
	m := clienttest.OpenClient(t, server.Client(t)).Mutex(world.Name)
	ctx := t.Context()
	l, err := m.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	server.Admin().ConfigSet(ctx, "maxmemory", "1")
	before := redistest.Snapshot(t, server.Admin())
	_, err = clienttest.OpenClient(t, server.Client(t)).Mutex("another").Lock(ctx)
	world.WantErr(t, err, holdfast.ErrOutOfMemory)
	_, err = clienttest.OpenClient(t, server.Client(t)).Mutex(world.Name).TryLock(ctx)
	world.WantErr(t, err, holdfast.ErrBusy)
	if after := redistest.Snapshot(t, server.Admin()); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	inner, err := m.Lock(l.Context(ctx))
	if err != nil {
		t.Fatalf("nested: %v", err)
	}
	if err := inner.Release(ctx); err != nil {
		t.Errorf("inner release: %v", err)
	}
	if n, err := m.HoldCount(ctx, l.Owner()); n != 1 || err != nil {
		t.Errorf("count %d, %v", n, err)
	}
	if err := l.Extend(ctx, time.Minute); err != nil {
		t.Errorf("extend: %v", err)
	}
	for range 3 { // whether or not the calls have to change the time to live
		owner, err := l.Detach(ctx)
		if err != nil {
			t.Fatalf("detach: %v", err)
		}
		if l, err = m.Attach(ctx, owner); err != nil {
			t.Fatalf("attach: %v", err)
		}
	}
	if err := l.Release(ctx); err != nil {
		t.Errorf("release: %v", err)
	}
	if locked, err := m.Locked(ctx); locked || err != nil {
		t.Errorf("locked %v, %v", locked, err)
	}
}

func TestInput_Denied(t *testing.T) {
	server, pulse := redistest.Server(t), redistest.FeelPulse(t)
	ctx := t.Context()
	user := func(name string, rules ...any) func(*redis.Options) {
		args := append([]any{"acl", "setuser", name, "on", ">" + name}, rules...)
		if err := server.Admin().Do(ctx, args...).Err(); err != nil {
			t.Fatal(err)
		}
		return func(o *redis.Options) { o.Username, o.Password = name, name }
	}
	for what, as := range map[string]func(*redis.Options){
		"wrong password": func(o *redis.Options) { o.Username, o.Password = "nobody", "x" },
		"no key":         user("nokey", "+@all", "&*"),
		"no script":      user("noscript", "~*", "&*", "+@all", "-@scripting"),
		"no hash":        user("nohash", "~*", "&*", "+@all", "-hset"),
	} {
		t.Run(what, func(t *testing.T) {
			m := clienttest.OpenClient(t, server.Client(t, as)).Mutex(world.Name)
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			started := time.Now()
			_, err := m.Lock(ctx)
			pulse.Within(t, "the telling", started, 5*time.Second)
			world.WantErr(t, err, holdfast.ErrDenied)
			if keys := server.Admin().Exists(ctx, world.Name).Val(); keys != 0 {
				t.Error("a lock is left")
			}
		})
	}
	t.Run("no channel", func(t *testing.T) {
		// A user that may not publish releases all the same, and a user that may not subscribe
		// waits all the same.
		m := clienttest.OpenClient(t, server.Client(t, user("nochannel", "~*", "+@all", "resetchannels"))).Mutex(world.Name)
		l, err := m.Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 1)
		go func() {
			next, err := m.Lock(ctx)
			if err == nil {
				err = next.Release(ctx)
			}
			got <- err
		}()
		if err := l.Release(ctx); err != nil {
			t.Error(err)
		}
		if err := <-got; err != nil {
			t.Error(err)
		}
	})
}
