// This file is about what a real server refuses: it has no memory left, or the user has no rights.

package holdfast_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// newClient returns a Client of a real server, with the given redis options.
func newClient(t *testing.T, server *redistest.Proc, options ...func(*redis.Options)) *holdfast.Client {
	t.Helper()
	client := holdfast.New(server.Client(t, options...), holdfast.WithLogger(redistest.Watched()))
	t.Cleanup(func() { client.Close() })
	return client
}

// A server without free memory grants nothing new. A lock that is held is still renewed, nested,
// detached, attached and released.
func TestInput_OutOfMemory(t *testing.T) {
	server := redistest.Server(t)
	m := newClient(t, server).Mutex(name)
	ctx := t.Context()
	l, err := m.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	server.Admin().ConfigSet(ctx, "maxmemory", "1")
	before := redistest.Snapshot(t, server.Admin())
	_, err = newClient(t, server).Mutex("another").Lock(ctx)
	wantErr(t, err, holdfast.ErrOutOfMemory)
	_, err = newClient(t, server).Mutex(name).TryLock(ctx)
	wantErr(t, err, holdfast.ErrBusy)
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
	server := redistest.Server(t)
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
			m := newClient(t, server, as).Mutex(name)
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			started := time.Now()
			_, err := m.Lock(ctx)
			wantErr(t, err, holdfast.ErrDenied)
			within(t, "told after", time.Since(started), 0, 5*time.Second)
			if keys := server.Admin().Exists(ctx, name).Val(); keys != 0 {
				t.Error("a lock is left")
			}
		})
	}
	t.Run("no channel", func(t *testing.T) {
		// A user that may not publish releases all the same, and a user that may not subscribe
		// waits all the same.
		m := newClient(t, server, user("nochannel", "~*", "+@all", "resetchannels")).Mutex(name)
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
