// Waiters go on though the program uses up its own connections, and what ends the wait of all ends it for all at once.

package faults

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/figures"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// The locks work even if the program uses up the pool of the client that it gave to the Client.
func TestUsersPoolExhausted(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		server := redistest.Mini(t)
		rdb := server.Client(func(o *redis.Options) { o.PoolSize, o.MaxRetries = 1, -1 })
		blocked := make(chan error)
		go func() { blocked <- rdb.BLPop(context.Background(), 0, "nothing comes here").Err() }()
		time.Sleep(time.Second)
		if stats := rdb.PoolStats(); stats.TotalConns != 1 || stats.IdleConns != 0 {
			t.Fatalf("%+v", stats)
		}
		c := clienttest.OpenClient(t, rdb)
		leases := clienttest.GrabMany(t, c, "pool", 20)
		time.Sleep(100 * time.Second) // leases of 30 s
		for name, l := range leases {
			clienttest.StillHeld(t, server.Client(), name, l)
		}
		clienttest.GiveBackAll(t, leases)
		_ = rdb.Close() // not before: BLPOP does not look at its context
		<-blocked
	})
}

// Many wait in one process, 20 ms away from Redis. What leaves them nothing to wait for is found by one of
// them, and all know at once.
func TestBadNewsIsForAll(t *testing.T) {
	const waiters, away = figures.Waiters, 20 * time.Millisecond
	for what, news := range figures.BadNews() {
		t.Run(what, func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				other, p := w.Process(), w.FarAway(away)
				if err := news.Prepare(t.Context(), other.Client); err != nil {
					t.Fatal(err)
				}
				told := make(chan time.Duration, waiters)
				for range waiters {
					go func() {
						if err := news.Wait(t.Context(), p.Client); !errors.Is(err, news.Want) {
							t.Errorf("error %v, want %v", err, news.Want)
						}
						told <- w.Now()
					}()
				}
				w.At(10 * time.Second)
				before := p.Net.Count("EVALSHA")
				if err := news.Tell(t.Context(), other.Client); err != nil {
					t.Fatal(err)
				}
				var all []time.Duration
				for range waiters {
					all = append(all, <-told)
				}
				// One is notified, and the others hear from it what it finds.
				last, scripts := slices.Max(all)-10*time.Second, p.Net.Count("EVALSHA")-before
				t.Logf("all know after %v and %d scripts", last, scripts)
				if last > 5*away || scripts > 5 {
					t.Errorf("all know after %v and %d scripts", last, scripts)
				}
				time.Sleep(20 * time.Second)
				synctest.Wait()
				w.RDB.FlushDB(t.Context())
			})
		})
	}
}

// second returns the error of a call with two results.
func second[T any](_ T, err error) error { return err }
