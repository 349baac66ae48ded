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
	l := clienttest.Grab(t, m)
	server.Admin().ConfigSet(ctx, "maxmemory", "1")
	before := redistest.Snapshot(t, server.Admin())
	stranger := clienttest.OpenClient(t, server.Client(t))
	world.WantErr(t, second(stranger.Mutex("another").Lock(ctx)), holdfast.ErrOutOfMemory)
	world.WantErr(t, second(stranger.Mutex(world.Name).TryLock(ctx)), holdfast.ErrBusy)
	if after := redistest.Snapshot(t, server.Admin()); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	inner, err := m.Lock(l.Context(ctx))
	must(t, err)
	clienttest.GiveBack(t, inner)
	if n, err := m.HoldCount(ctx, l.Owner()); n != 1 || err != nil {
		t.Errorf("count %d, %v", n, err)
	}
	must(t, l.Extend(ctx, time.Minute))
	for range 3 { // whether or not the calls have to change the time to live
		l = attach(t, m, detach(t, l))
	}
	clienttest.GiveBack(t, l)
	if locked, err := m.Locked(ctx); locked || err != nil {
		t.Errorf("locked %v, %v", locked, err)
	}
}

// What Redis refuses to a user is refused at once, and leaves nothing.
func TestInput_Denied(t *testing.T) {
	server := redistest.Server(t)
	for what, as := range map[string]func(*redis.Options){
		"wrong password": func(o *redis.Options) { o.Username, o.Password = "nobody", "x" },
		"no key":         clienttest.User(t, server, "nokey", "+@all", "&*"),
		"no script":      clienttest.User(t, server, "noscript", "~*", "&*", "+@all", "-@scripting"),
		"no hash":        clienttest.User(t, server, "nohash", "~*", "&*", "+@all", "-hset"),
	} {
		t.Run(what, func(t *testing.T) {
			m := clienttest.OpenClient(t, server.Client(t, as)).Mutex(world.Name)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			world.WantErr(t, second(m.Lock(ctx)), holdfast.ErrDenied)
			if ctx.Err() != nil || server.Admin().Exists(t.Context(), world.Name).Val() != 0 {
				t.Errorf("not at once (%v), or a lock is left", ctx.Err())
			}
		})
	}
	t.Run("no channel", func(t *testing.T) { // who may not publish releases, and who may not subscribe waits
		as := clienttest.User(t, server, "nochannel", "~*", "+@all", "resetchannels")
		m := clienttest.OpenClient(t, server.Client(t, as)).Mutex(world.Name)
		l, got := clienttest.Grab(t, m), make(chan struct{})
		go func() {
			defer close(got)
			clienttest.GiveBack(t, clienttest.Grab(t, m))
		}()
		clienttest.GiveBack(t, l)
		<-got
	})
}
