// This test runs on real servers.

package barrier_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// A barrier trips and breaks on one server, behind Sentinel and on a cluster, whatever the braces of
// its name.
func TestTopologies(t *testing.T) {
	for topology, open := range map[string]func(t *testing.T) func() redis.UniversalClient{
		"server": func(t *testing.T) func() redis.UniversalClient {
			s := redistest.Server(t)
			return func() redis.UniversalClient { return s.Client(t) }
		},
		"sentinel": func(t *testing.T) func() redis.UniversalClient {
			s := redistest.Sentinel(t)
			return func() redis.UniversalClient { return s.Client(t) }
		},
		"cluster": func(t *testing.T) func() redis.UniversalClient {
			s := redistest.Cluster(t, 3, 0)
			return func() redis.UniversalClient { return s.Client(t) }
		},
	} {
		t.Run(topology, func(t *testing.T) {
			dial := open(t)
			a, b := clienttest.OpenClient(t, dial()), clienttest.OpenClient(t, dial())
			for _, name := range []string{"orders", "{user7}:cart", "a}b", "a{", "x{}{t}"} {
				conforms(t, name, a, b)
			}
		})
	}
}

// conforms has two processes with five parties each trip a barrier, twice, and break it.
func conforms(t *testing.T, name string, a, b *holdfast.Client) {
	t.Helper()
	const parties = 10
	come := func(n int) <-chan answer {
		c := make(chan answer, n)
		for i := range n {
			go func() {
				trip, err := []*holdfast.Client{a, b}[i%2].Barrier(name, parties).Await(clienttest.Generous(t))
				c <- answer{trip: trip, err: err}
			}()
		}
		return c
	}
	for range 2 {
		c := come(parties)
		var all []answer
		for range parties {
			all = append(all, <-c)
		}
		agree(t, all...)
	}
	c := come(1)
	redistest.Eventually(t, time.Minute, "it has come", func() error {
		s, err := b.Barrier(name, parties).State(t.Context())
		if err == nil && s.Arrived != 1 {
			err = fmt.Errorf("state %+v", s)
		}
		return err
	})
	if broke, err := b.Barrier(name, parties).Reset(t.Context()); !broke || err != nil {
		t.Errorf("%q: %v, %v", name, broke, err)
	}
	if a := <-c; !isBroken(a) {
		t.Errorf("%q: told %v", name, a.err)
	}
}
