// These tests run on a real server, with processes that are killed and with replies that are lost. An
// oracle counts how often the work of each key was done.

package once

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/enginetest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

// workerLease is the lease of the workers: how long a key is out of use when one is killed.
const workerLease = 2 * time.Second

// runWorker asks for each of KEYS keys, from 4 goroutines, by way of PROXY. It says when it has done
// work for the first time, and when it has all results. What the work does it writes to SERVER itself,
// as a program would write to its database:
//
//	effect:<key>   a list of "<worker>:<token>", one for each time that the work was done
//	got:<key>      a set of the results that callers were given
//	excused        a set of "<worker>:<token>" whose callers were told that the hold was lost, or that
//	               nobody knows whether the result is kept
func runWorker(c *redistest.ChildContext) {
	db := redis.NewClient(&redis.Options{Addr: os.Getenv("SERVER")})
	defer db.Close()
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("PROXY")})
	defer rdb.Close()
	e, err := enginetest.Open(rdb)
	if err != nil {
		c.Say("error %v", err)
		return
	}
	defer e.Close()
	n, _ := strconv.Atoi(os.Getenv("KEYS"))
	begun := sync.OnceFunc(func() { c.Say("begun") })
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range n {
				if err := workOn(c, e, db, strconv.Itoa(i), begun); err != nil {
					c.Say("error %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	c.Say("done")
}

func workOn(ctx context.Context, e *engine.Engine, db *redis.Client, key string, begun func()) error {
	o := New(e, "work", "work", nil, []Option{Keep(time.Hour), Lease(lease.Renewed(workerLease))})
	for {
		mine := ""
		value, err := Value(ctx, o, key, func(ctx context.Context) (string, error) {
			begun()
			mine = fmt.Sprintf("%s:%d", os.Getenv("WORKER"), Token(ctx))
			time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
			err := db.RPush(context.WithoutCancel(ctx), "effect:"+key, mine).Err()
			time.Sleep(time.Duration(rand.IntN(4000)) * time.Microsecond) // to be killed after the effect
			return mine, err
		})
		switch {
		case err == nil:
			return db.SAdd(ctx, "got:"+key, value).Err()
		case errors.Is(err, errs.Lost) || errors.Is(err, errs.Unknown):
			if err := db.SAdd(ctx, "excused", mine).Err(); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// crew are the workers of a test, three at a time.
type crew struct {
	t       *testing.T
	env     map[string]string
	begun   int
	members [3]*redistest.ChildProc
	names   [3]string
	killed  map[string]bool
}

// start starts a new worker in place i.
func (c *crew) start(i int) {
	c.begun++
	c.names[i] = fmt.Sprintf("w%d", c.begun)
	env := maps.Clone(c.env)
	env["WORKER"] = c.names[i]
	c.members[i] = redistest.Start(c.t, "worker", env)
}

// line returns what the worker in place i says next.
func (c *crew) line(i int) string {
	line := c.members[i].Line()
	if strings.HasPrefix(line, "error") {
		c.t.Fatalf("%s: %s", c.names[i], line)
	}
	return line
}

// kill kills the worker in place i, soon after it has begun to work, and starts a new one. It reports
// false if nothing is left to do.
func (c *crew) kill(i int) bool {
	if c.line(i) != "begun" {
		c.start(i) // done; the new one says so too
		return false
	}
	time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
	c.members[i].Kill()
	c.killed[c.names[i]] = true
	c.start(i)
	return true
}

// Workers are killed in the middle of what they do, and a part of all requests and replies is lost.
// The work of each key is done once, except where a worker died or was told of a loss between its
// effect and its result. Everybody gets the same result, and it is that of the last time.
func TestOncePerKey_KilledAndLost(t *testing.T) {
	count, kills := redistest.Count(t, 10_000), redistest.Count(t, 200)
	server := redistest.Server(t)
	proxy := redistest.Proxy(t, server.Addr())
	proxy.OnCommand(func(c redistest.Command) redistest.Fault {
		if c.Name != "EVALSHA" && c.Name != "EVAL" {
			return redistest.Pass
		}
		switch c.N % 23 {
		case 0:
			return redistest.CloseAfterExec
		case 7:
			return redistest.DropBefore
		case 13:
			return redistest.Delay(5 * time.Millisecond)
		default:
			return redistest.Pass
		}
	})
	crew := crew{t: t, killed: make(map[string]bool), env: map[string]string{
		"SERVER": server.Addr(), "PROXY": proxy.Addr(), "KEYS": strconv.Itoa(count),
	}}
	for i := range crew.members {
		crew.start(i)
	}
	for range kills {
		if !crew.kill(rand.IntN(len(crew.members))) {
			break // all is done
		}
	}
	for i := range crew.members {
		for crew.line(i) != "done" {
		}
	}
	judge(t, server.Client(t), count, crew.killed)
	t.Logf("%d keys, %d kills, %d faults", count, len(crew.killed), proxy.Injected())
	if proxy.Injected() == 0 {
		t.Error("nothing was lost")
	}
}

// judge is the oracle.
func judge(t *testing.T, db *redis.Client, count int, killed map[string]bool) {
	t.Helper()
	again := 0
	for i := range count {
		key := strconv.Itoa(i)
		effects := db.LRange(t.Context(), "effect:"+key, 0, -1).Val()
		got := db.SMembers(t.Context(), "got:"+key).Val()
		if len(effects) == 0 || len(got) != 1 || got[0] != effects[len(effects)-1] {
			t.Errorf("key %s: done by %q, and callers got %q", key, effects, got)
			continue
		}
		last := int64(0)
		for i, effect := range effects {
			worker, number, _ := strings.Cut(effect, ":")
			token, _ := strconv.ParseInt(number, 10, 64)
			if token <= last {
				t.Errorf("key %s: token %d after %d", key, token, last)
			}
			last = token
			if i == len(effects)-1 {
				break
			}
			again++
			if !killed[worker] && !db.SIsMember(t.Context(), "excused", effect).Val() {
				t.Errorf("key %s: done again after %s, which nothing explains", key, effect)
			}
		}
	}
	t.Logf("%d of %d keys were done again, each as explained; %d losses told", again, count, db.SCard(t.Context(), "excused").Val())
}

// Each tick has one winner, and each caller is told the truth, though replies are lost.
func TestTicksWithLostReplies(t *testing.T) {
	server := redistest.Server(t)
	proxy := redistest.Proxy(t, server.Addr())
	proxy.OnCommand(func(c redistest.Command) redistest.Fault {
		if c.Name != "EVALSHA" && c.Name != "EVAL" {
			return redistest.Pass
		}
		switch c.N % 11 {
		case 0:
			return redistest.CloseAfterExec
		case 5:
			return redistest.Duplicate
		case 8:
			return redistest.DropBefore
		default:
			return redistest.Pass
		}
	})
	count := redistest.Count(t, 10_000)
	at := time.Now()
	wins := make([]int, count)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 3 {
		e := enginetest.New(t, proxy.Client(t))
		for worker := range 4 {
			all.Go(func() {
				for i := worker; i < count; i += 4 {
					won, err := Tick(t.Context(), e, "n", "n", at.Add(time.Duration(i)*time.Second), time.Hour)
					if err != nil {
						t.Error(err)
						return
					}
					if won {
						mu.Lock()
						wins[i]++
						mu.Unlock()
					}
				}
			})
		}
	}
	all.Wait()
	for i, n := range wins {
		if n != 1 {
			t.Errorf("tick %d was won %d times", i, n)
		}
	}
	t.Logf("%d ticks, %d faults", count, proxy.Injected())
	if proxy.Injected() == 0 {
		t.Error("nothing was lost")
	}
}

// On a cluster, the keys of a Once stand in their slots, and its messages come by them.
func TestOnACluster(t *testing.T) {
	cluster := redistest.Cluster(t, 3, 0)
	a, b := enginetest.New(t, cluster.Client(t)), enginetest.New(t, cluster.Client(t))
	for i := range 20 {
		key := fmt.Sprintf("{%d}:k", i)
		began := make(chan struct{})
		first := make(chan error, 1)
		go func() {
			_, err := Value(t.Context(), New(a, "n", "n", nil, nil), key, func(context.Context) (int, error) {
				close(began)
				time.Sleep(20 * time.Millisecond)
				return i, nil
			})
			first <- err
		}()
		<-began
		got, err := Value(t.Context(), New(b, "n", "n", nil, nil), key, func(context.Context) (int, error) { return -1, nil })
		if got != i || err != nil || <-first != nil {
			t.Errorf("%s: %d, %v", key, got, err)
		}
		if err := New(b, "n", "n", nil, nil).Forget(t.Context(), key); err != nil {
			t.Error(err)
		}
	}
	if won, err := Tick(t.Context(), a, "n", "n", time.Now(), time.Minute); !won || err != nil {
		t.Errorf("%v, %v", won, err)
	}
}
