// What ends the wait of all ends it for all at once.

package faults

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// Many wait in one process, 20 ms away from Redis. What leaves them nothing to wait for is found by one of
// them, and all know at once.
func TestBadNewsIsForAll(t *testing.T) {
	const waiters, away = 500, 20 * time.Millisecond
	for what, tc := range map[string]struct {
		prepare func(ctx context.Context, c *holdfast.Client) error
		wait    func(ctx context.Context, c *holdfast.Client) error
		news    func(ctx context.Context, c *holdfast.Client) error
		want    error
	}{
		"a barrier is reset": {
			wait: func(ctx context.Context, c *holdfast.Client) error {
				return second(c.Barrier("b", waiters+1).Await(ctx))
			},
			news: func(ctx context.Context, c *holdfast.Client) error {
				return second(c.Barrier("b", waiters+1).Reset(ctx))
			},
			want: holdfast.ErrBroken,
		},
		"a latch is deleted": {
			prepare: func(ctx context.Context, c *holdfast.Client) error { return second(c.Latch("l").TrySetCount(ctx, 1)) },
			wait:    func(ctx context.Context, c *holdfast.Client) error { return c.Latch("l").Wait(ctx) },
			news:    func(ctx context.Context, c *holdfast.Client) error { return second(c.Latch("l").Delete(ctx)) },
			want:    holdfast.ErrDeleted,
		},
		"permits are made fewer": {
			prepare: func(ctx context.Context, c *holdfast.Client) error {
				p := c.PermitSemaphore("p")
				if _, err := p.TrySetPermits(ctx, 3); err != nil {
					return err
				}
				return second(p.Acquire(ctx, 1))
			},
			wait: func(ctx context.Context, c *holdfast.Client) error {
				return second(c.PermitSemaphore("p").Acquire(ctx, 3))
			},
			news: func(ctx context.Context, c *holdfast.Client) error { return c.PermitSemaphore("p").AddPermits(ctx, -1) },
			want: holdfast.ErrNoPermits,
		},
	} {
		t.Run(what, func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				other, p := w.Process(), w.FarAway(away)
				if tc.prepare != nil {
					if err := tc.prepare(t.Context(), other.Client); err != nil {
						t.Fatal(err)
					}
				}
				told := make(chan time.Duration, waiters)
				for range waiters {
					go func() {
						if err := tc.wait(t.Context(), p.Client); !errors.Is(err, tc.want) {
							t.Errorf("error %v, want %v", err, tc.want)
						}
						told <- w.Now()
					}()
				}
				w.At(10 * time.Second)
				before := p.Net.Count("EVALSHA")
				if err := tc.news(t.Context(), other.Client); err != nil {
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
