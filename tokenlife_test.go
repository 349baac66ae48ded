// WithTokenLife is for every kind of lock that has a token, and nothing else depends on it.

package holdfast_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

const dayOfTokens = 24 * time.Hour

func TestTokensAreKeptForAsLongAsTheClientSays(t *testing.T) {
	for kind, locker := range map[string]func(*holdfast.Client) holdfast.Locker{
		"mutex":     func(c *holdfast.Client) holdfast.Locker { return c.Mutex("x") },
		"fairmutex": func(c *holdfast.Client) holdfast.Locker { return c.FairMutex("x") },
		"rwmutex":   func(c *holdfast.Client) holdfast.Locker { return c.RWMutex("x") },
	} {
		t.Run(kind, func(t *testing.T) {
			onlook(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client, usual *holdfast.Client) {
				short := holdfast.New(rdb, holdfast.WithTokenLife(dayOfTokens))
				defer short.Close()
				forever := holdfast.New(rdb, holdfast.WithTokenLife(dayOfTokens), holdfast.WithDefaults(holdfast.JavaTokens()))
				defer forever.Close()
				for _, step := range []struct {
					of   *holdfast.Client
					want time.Duration
				}{{short, dayOfTokens}, {usual, 7 * 24 * time.Hour}, {forever, -1}} {
					rdb.Del(t.Context(), "redisson_lock_token:{x}")
					pair(t, locker(step.of))
					if left := rdb.PTTL(t.Context(), "redisson_lock_token:{x}").Val(); left != step.want && left.Round(time.Second) != step.want {
						t.Errorf("the token is kept for %v, want %v", left, step.want)
					}
				}
			})
		})
	}
}

func pair(t *testing.T, l holdfast.Locker) {
	t.Helper()
	hold, err := l.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestATokenThatWasLostIsMadeAnewForThatLong(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client, _ *holdfast.Client) {
		c := holdfast.New(rdb, holdfast.WithTokenLife(dayOfTokens))
		defer c.Close()
		l, err := c.Mutex("x").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		owner, err := l.Detach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rdb.Del(t.Context(), "redisson_lock_token:{x}")
		if l, err = c.Mutex("x").Attach(t.Context(), owner); err != nil {
			t.Fatal(err)
		}
		defer l.Release(t.Context())
		if left := rdb.PTTL(t.Context(), "redisson_lock_token:{x}").Val(); left.Round(time.Second) != dayOfTokens {
			t.Errorf("the token is kept for %v", left)
		}
	})
}

func TestAClientSeesSinceWhenItsOwnTokensAreHeld(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client, usual *holdfast.Client) {
		c := holdfast.New(rdb, holdfast.WithTokenLife(dayOfTokens))
		defer c.Close()
		began := time.Now()
		l, err := c.Mutex("x").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer l.Release(t.Context())
		time.Sleep(10 * time.Second)
		if since := inspected(t, c, "x").HeldSince; since.Sub(began).Abs() > time.Second {
			t.Errorf("held since %v, want %v", since, began)
		}
		if since := inspected(t, usual, "x").HeldSince; !since.IsZero() {
			t.Errorf("held since %v for a Client that keeps tokens longer, want not known", since)
		}
	})
}

func TestATokenLifeOfLessThanAnHourIsRefused(t *testing.T) {
	for _, life := range []time.Duration{-1, time.Minute, time.Hour - 1} {
		c := holdfast.New(redistest.Mini(t).Client(), holdfast.WithTokenLife(life))
		defer c.Close()
		if _, err := c.Mutex("x").Lock(t.Context()); !errors.Is(err, holdfast.ErrBadArgument) {
			t.Errorf("%v: %v, want ErrBadArgument", life, err)
		}
	}
}
