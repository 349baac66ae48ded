// The lookout: it looks into Redis, not through the proxies, and sees who holds which object
// there. So it can tell three times apart: when an object was free, when a lease or a place in
// the queue had to run out, and when no server took writes.

package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

const (
	// lookEvery is the pause between two looks at each server.
	lookEvery = 50 * time.Millisecond
	// lookPatience is how long a server may take to answer.
	lookPatience = 250 * time.Millisecond
)

// lookout looks at exclusive objects.
type lookout struct {
	objects []watched
	locks   map[string]keys.FairLock
	running sync.WaitGroup

	mu     sync.Mutex
	seen   map[string][]glimpse // by lock, on each node
	told   map[string]changes   // by object
	stands map[string][]stand   // by object, if that is one lock on one server
}

// watched is an object and the locks that it consists of. It is free when all of its locks are
// free, each on as many servers as have to agree.
type watched struct {
	name  string
	locks []string
	agree int
}

// newLookout starts to look at all exclusive objects of the run, until ctx ends.
func newLookout(ctx context.Context, t testing.TB, c config, nodes []*redistest.Proc) *lookout {
	t.Helper()
	l := &lookout{
		locks: map[string]keys.FairLock{}, seen: map[string][]glimpse{},
		told: map[string]changes{}, stands: map[string][]stand{},
	}
	for _, kind := range c.Kinds {
		if rules[kind].capacity != 1 || rules[kind].undated {
			continue // a Once has no names that are known before the run; shards have no keys of their own
		}
		for n := range c.names() {
			l.watch(t, kind, fmt.Sprintf("%s-%d", kind, n), len(nodes))
		}
		if kind == crowdKind {
			l.watch(t, kind, crowded, len(nodes))
			l.watch(t, kind, tried, len(nodes))
		}
		for place := range c.Processes {
			l.watch(t, kind, seat(kind, fmt.Sprint(place)), len(nodes))
		}
	}
	for i, p := range nodes {
		// Not the harness's client: go-redis itself refuses a client for a while that has
		// dialled in vain for long.
		rdb := p.Client(t, func(o *redis.Options) {
			o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled, o.PoolSize = -1, 1, true, 1000
		})
		l.running.Go(func() {
			defer rdb.Close()
			l.follow(ctx, i, rdb)
		})
	}
	return l
}

func (l *lookout) watch(t testing.TB, kind, name string, servers int) {
	t.Helper()
	o := watched{name: name, locks: []string{name}, agree: 1}
	switch kind {
	case "multi":
		o.locks = []string{name + ".a", name + ".b"}
	case "stripe":
		o.locks = []string{name + ":0"}
	case "quorum":
		o.agree = servers/2 + 1
	}
	for _, lock := range o.locks {
		at, err := keys.Space("").ForFairLock(lock)
		if err != nil {
			t.Fatalf("%v", err)
		}
		l.locks[lock], l.seen[lock] = at, make([]glimpse, servers)
	}
	l.objects = append(l.objects, o)
}

// follow looks at one server until ctx ends.
func (l *lookout) follow(ctx context.Context, node int, rdb *redis.Client) {
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			l.note(node, l.look(ctx, rdb))
		case <-ctx.Done():
			return
		}
	}
}

// look asks a server for all locks. A lock that the server does not report is unseen.
func (l *lookout) look(ctx context.Context, rdb *redis.Client) map[string]glimpse {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	pipe := rdb.Pipeline()
	role := pipe.Do(ctx, "ROLE")
	began := time.Now()
	type asked struct {
		holders *redis.StringSliceCmd
		left    *redis.DurationCmd
		queue   *redis.StringSliceCmd
		alive   *redis.ZSliceCmd
	}
	all := make(map[string]asked, len(l.locks))
	for lock, at := range l.locks {
		all[lock] = asked{pipe.HKeys(ctx, at.Hash), pipe.PTTL(ctx, at.Hash), pipe.ZRange(ctx, at.Queue, 0, -1), pipe.ZRangeWithScores(ctx, at.Alive, 0, -1)}
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	got := make(map[string]glimpse, len(all))
	if words, err := role.Slice(); err != nil || len(words) == 0 || words[0] != "master" {
		return got
	}
	l.stand(began, func(lock string) (string, time.Duration) {
		holders := all[lock].holders.Val()
		if len(holders) != 1 {
			return "", 0
		}
		return holders[0], all[lock].left.Val()
	})
	for lock, a := range all {
		holders, err := a.holders.Result()
		switch first := firstOf(a.queue.Val(), a.alive.Val()); {
		case err != nil: // the lock is another server's
		case len(holders) > 0:
			got[lock] = glimpse{standing, strings.Join(holders, " ")}
		case first != "":
			got[lock] = glimpse{reserved, first}
		default:
			got[lock] = glimpse{unheld, ""}
		}
	}
	return got
}

// stand records the holder of each lock that is not a member of another, and until when it holds
// the lock.
func (l *lookout) stand(began time.Time, holder func(lock string) (owner string, left time.Duration)) {
	answered := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.objects {
		if len(o.locks) > 1 || o.agree > 1 || ruleOf(o.name).nameless {
			continue
		}
		if owner, left := holder(o.locks[0]); owner != "" && left > 0 {
			l.stands[o.name] = append(l.stands[o.name], stand{stamp(began), stamp(answered.Add(left)), owner})
		}
	}
}

// firstOf returns the first in the queue whose place is kept.
func firstOf(queue []string, alive []redis.Z) string {
	until := make(map[string]float64, len(alive))
	for _, z := range alive {
		until[z.Member.(string)] = z.Score
	}
	now := float64(time.Now().UnixMilli()) // the servers' clock is this machine's
	for _, owner := range queue {
		if until[owner] > now {
			return owner
		}
	}
	return ""
}

// note records what has changed.
func (l *lookout) note(node int, got map[string]glimpse) {
	now := stamp(time.Now())
	l.mu.Lock()
	defer l.mu.Unlock()
	for lock, on := range l.seen {
		on[node] = got[lock]
	}
	for _, o := range l.objects {
		is, before := l.glimpse(o), l.told[o.name]
		if len(before) == 0 || before[len(before)-1].glimpse != is {
			l.told[o.name] = append(before, change{now, is})
		}
	}
}

// glimpse combines what the servers report about an object: of its locks, it takes the one that
// is least free.
func (l *lookout) glimpse(o watched) glimpse {
	all := glimpse{sight: unheld}
	known := true
	for _, lock := range o.locks {
		is := together(l.seen[lock], o.agree)
		known = known && is.sight != unseen
		all.sight, all.by = max(all.sight, is.sight), all.by+is.by
	}
	if !known && all.sight == unheld {
		return glimpse{}
	}
	return all
}

// together combines what the servers report about one lock. agree is how many of them must
// agree that it is free. A former master may still take itself for the master.
func together(on []glimpse, agree int) glimpse {
	all, free := glimpse{}, 0
	for _, g := range on {
		if g.sight == unheld || g.sight == reserved {
			free++
		}
		all.sight, all.by = max(all.sight, g.sight), all.by+g.by
	}
	if agree > 1 && free >= agree {
		return glimpse{sight: unheld}
	}
	return all
}

// standsOf returns the looks at an object that found it held.
func (l *lookout) standsOf(object string) []stand {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stands[object]
}

// of returns what was seen of an object.
func (l *lookout) of(object string) changes {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.told[object]
}
