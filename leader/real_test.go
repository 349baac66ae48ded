// These tests show elections on real servers, of each topology.

package leader_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/leader"
)

// Many candidates resign in turn. One leads at a time, tokens grow, an observer never goes back, and
// nothing is left.
func TestManyTermsOnRealServers(t *testing.T) {
	t.Run("one server", func(t *testing.T) {
		s := redistest.Server(t)
		manyTerms(t, "scheduler", func() redis.UniversalClient { return s.Client(t) })
		leftBehind(t, s.Admin())
	})
	t.Run("cluster", func(t *testing.T) {
		s := redistest.Cluster(t, 3, 0)
		onlooker := s.Client(t)
		for _, name := range []string{"scheduler", "{eu}:scheduler", "odd}name"} {
			manyTerms(t, name, func() redis.UniversalClient { return s.Client(t) })
		}
		leftBehind(t, onlooker)
	})
}

func leftBehind(t *testing.T, onlooker redis.UniversalClient) {
	t.Helper()
	redistest.LeftBehind(t, onlooker, "redisson_lock_token:", "holdfast_lock_token:")
}

func manyTerms(t *testing.T, name string, dial func() redis.UniversalClient) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var inside atomic.Int32
	var last, terms atomic.Int64
	want := int64(redistest.Count(t, 2000))
	work := func(_ context.Context, term *leader.Term) error {
		if n := inside.Add(1); n != 1 {
			t.Errorf("%d lead", n)
		}
		if before := last.Swap(term.Token()); term.Token() <= before {
			t.Errorf("token %d after %d", term.Token(), before)
		}
		inside.Add(-1)
		if terms.Add(1) >= want {
			stop()
		}
		return nil
	}
	var all sync.WaitGroup
	var clients []*holdfast.Client
	var rdbs []redis.UniversalClient
	for i := range 4 {
		rdb := dial()
		c := clienttest.OpenClient(t, rdb)
		rdbs = append(rdbs, rdb)
		clients = append(clients, c)
		all.Go(func() {
			for ctx.Err() == nil {
				err := c.Leader(name, leader.Identity(fmt.Sprint(i)), leader.Lease(5*time.Second)).Run(ctx, work)
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
					return
				}
			}
		})
	}
	newest := int64(0)
	for info := range clients[0].Leader(name).Observe(ctx) {
		if info.Leads() && info.Token < newest {
			t.Errorf("token %d seen after %d", info.Token, newest)
		}
		newest = max(newest, info.Token)
	}
	all.Wait()
	if newest == 0 {
		t.Error("nothing was seen")
	}
	for i, c := range clients {
		c.Close()
		rdbs[i].Close()
	}
}
