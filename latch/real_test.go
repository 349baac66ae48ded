// These tests run on real servers and real processes, and show what must hold for the latch.

package latch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/enginetest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Each count-down counts once, though replies are lost and requests are doubled.
func TestCountDownsWithLostReplies(t *testing.T) {
	server := redistest.Server(t)
	rdb := server.Client(t)
	proxy := redistest.Proxy(t, server.Addr())
	proxy.OnCommand(func(c redistest.Command) redistest.Fault {
		if c.Name != "EVALSHA" && c.Name != "EVAL" {
			return redistest.Pass
		}
		switch c.N % 11 {
		case 0:
			return redistest.CloseAfterExec
		case 4:
			return redistest.Duplicate
		case 8:
			return redistest.HalfReply
		default:
			return redistest.Pass
		}
	})
	count := redistest.Count(t, 10_000)
	l := New(enginetest.New(t, proxy.Client(t)), "l", "l")
	plain := New(enginetest.New(t, rdb), "l", "l")
	if set, err := l.TrySetCount(t.Context(), int64(count)); !set || err != nil {
		t.Fatalf("%v, %v", set, err)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		if err := plain.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
	var mu sync.Mutex
	seen := make(map[int64]int)
	const workers = 8
	for i := range workers {
		wait.Go(func() {
			for range count/workers + map[bool]int{true: count % workers}[i == 0] {
				left, err := l.CountDown(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				seen[left]++
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if proxy.Injected() == 0 {
		t.Error("no reply was lost")
	}
	for left := range int64(count) {
		if seen[left] != 1 {
			t.Errorf("%d was left %d times", left, seen[left])
		}
	}
	if rdb.Exists(t.Context(), "l").Val() != 0 {
		t.Error("the latch is still there")
	}
	t.Logf("%d count-downs, %d faults", count, proxy.Injected())
}

// runWaiters waits with WAITERS goroutines. Its parent then sends it an instant, in ms of the wall
// clock. runWaiters says how late after that instant the last of the goroutines was.
func runWaiters(c *redistest.ChildContext) {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("SERVER")})
	defer rdb.Close()
	e, err := enginetest.Open(rdb)
	if err != nil {
		c.Say("error %v", err)
		return
	}
	defer e.Close()
	n, _ := strconv.Atoi(os.Getenv("WAITERS"))
	l := New(e, "l", "l")
	var ready, done sync.WaitGroup
	var mu sync.Mutex
	var last time.Time
	for range n {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			if err := l.Wait(c); err != nil {
				c.Say("error %v", err)
			}
			mu.Lock()
			last = time.Now()
			mu.Unlock()
		})
	}
	ready.Wait()
	c.Say("waiting")
	done.Wait()
	c.Say("done %d", last.UnixMilli())
}

func TestAThousandWaitersInEightProcesses(t *testing.T) {
	const processes, waiters = 8, 1000
	server := redistest.Server(t)
	l := New(enginetest.New(t, server.Client(t)), "l", "l")
	if set, err := l.TrySetCount(t.Context(), 2); !set || err != nil {
		t.Fatalf("%v, %v", set, err)
	}
	var children []*redistest.ChildProc
	for range processes {
		children = append(children, redistest.Start(t, "waiters", map[string]string{
			"SERVER": server.Addr(), "WAITERS": itoa(waiters / processes),
		}))
	}
	for _, c := range children {
		c.Expect("waiting")
	}
	time.Sleep(300 * time.Millisecond)
	if left, err := l.CountDown(t.Context()); left != 1 || err != nil {
		t.Fatalf("%d left, %v", left, err)
	}
	pulse, zero := redistest.FeelPulse(t), time.Now()
	if left, err := l.CountDown(t.Context()); left != 0 || err != nil {
		t.Fatalf("%d left, %v", left, err)
	}
	var latest time.Duration
	for _, c := range children {
		at, err := strconv.ParseInt(c.Expect("done "), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		latest = max(latest, time.UnixMilli(at).Sub(zero))
	}
	t.Logf("%d waiters in %d processes: the last one was woken after %v", waiters, processes, latest)
	if latest > time.Second+pulse.Slack(zero, time.Now()) {
		t.Errorf("the last one was woken after %v", latest)
	}
}

// The latch works on a cluster with sharded channels, whatever the braces of the name.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t, 3, 0)
	a, b := enginetest.New(t, c.Client(t)), enginetest.New(t, c.Client(t))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	pulse := redistest.FeelPulse(t)
	for _, name := range []string{"orders", "{user7}:cart", "a}b", "a{", "x{}{t}"} {
		l := New(a, name, name)
		if set, err := l.TrySetCount(ctx, 1); !set || err != nil {
			t.Fatalf("%q: %v, %v", name, set, err)
		}
		waiting := make(chan error)
		go func() { waiting <- New(b, name, name).Wait(ctx) }()
		time.Sleep(100 * time.Millisecond)
		counted := time.Now()
		if left, err := l.CountDown(ctx); left != 0 || err != nil {
			t.Fatalf("%q: %d, %v", name, left, err)
		}
		if err := <-waiting; err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		pulse.Within(t, fmt.Sprintf("%q: the wake-up", name), counted, wakeBound)
	}
}

func TestDenied(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t)
	rdb := server.Client(t)
	if err := rdb.Do(t.Context(), "ACL", "SETUSER", "u", "on", ">p", "~other", "&*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	l := New(enginetest.New(t, server.Client(t, func(o *redis.Options) { o.Username, o.Password = "u", "p" })), "l", "l")
	_, set := l.TrySetCount(t.Context(), 1)
	_, counted := l.CountDown(t.Context())
	_, count := l.Count(t.Context())
	_, deleted := l.Delete(t.Context())
	for i, err := range []error{set, counted, count, deleted, l.Wait(t.Context())} {
		if !errors.Is(err, errs.Denied) || errors.Is(err, errs.Unknown) {
			t.Errorf("%d: %v, want one that matches %q", i, err, errs.Denied)
		}
	}
}

// wakeBound is less than the sleep of a waiter that no message wakes (0.9 s and more).
const wakeBound = 500 * time.Millisecond

// Holdfast sees what Redisson's scripts do, and Redisson's scripts see what Holdfast does.
func TestBesideRedisson(t *testing.T) {
	t.Parallel()
	const (
		javaSet       = `if redis.call('exists', KEYS[1]) == 0 then redis.call('set', KEYS[1], ARGV[2]); redis.call(ARGV[3], KEYS[2], ARGV[1]); return 1 else return 0 end`
		javaCountDown = `local v = redis.call('decr', KEYS[1]); if v <= 0 then redis.call('del', KEYS[1]) end; if v == 0 then redis.call(ARGV[2], KEYS[2], ARGV[1]) end`
		javaDelete    = `if redis.call('del', KEYS[1]) == 1 then redis.call(ARGV[2], KEYS[2], ARGV[1]); return 1 else return 0 end`
	)
	rdb := redistest.Server(t).Client(t)
	l := New(enginetest.New(t, rdb), "l", "l")
	ctx := t.Context()
	keys := []string{"l", "redisson_countdownlatch__channel__{l}"}
	java := func(script string, args ...any) {
		t.Helper()
		if err := rdb.Eval(ctx, script, keys, args...).Err(); err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
	}
	messages := rdb.Subscribe(ctx, keys[1])
	defer messages.Close()
	if _, err := messages.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	wait := func() <-chan error {
		t.Helper()
		waiting, before := make(chan error, 1), scripts(t, rdb)
		go func() { waiting <- l.Wait(ctx) }()
		redistest.Eventually(t, 20*time.Second, "it has found the latch", func() error {
			if scripts(t, rdb) == before {
				return errors.New("it has not asked")
			}
			return nil
		})
		return waiting
	}
	told := func(want ...string) {
		t.Helper()
		for _, payload := range want {
			m, err := messages.ReceiveMessage(ctx)
			if err != nil || m.Payload != payload {
				t.Errorf("told %v, %v, want %q", m, err, payload)
			}
		}
	}
	pulse := redistest.FeelPulse(t)
	soon := func(waiting <-chan error, want error) {
		t.Helper()
		told := time.Now()
		if err := <-waiting; !errors.Is(err, want) {
			t.Errorf("waited: %v, want %v", err, want)
		}
		pulse.Within(t, "the wake-up", told, wakeBound)
	}

	java(javaSet, "1", 2, "PUBLISH")
	waiting := wait()
	if left, err := l.CountDown(ctx); left != 1 || err != nil {
		t.Fatal(left, err)
	}
	java(javaCountDown, "0", "PUBLISH")
	soon(waiting, nil)
	told("1", "0")

	if set, err := l.TrySetCount(ctx, 2); !set || err != nil {
		t.Fatal(set, err)
	}
	waiting = wait()
	java(javaCountDown, "0", "PUBLISH")
	java(javaCountDown, "0", "PUBLISH")
	soon(waiting, nil)
	told("1", "0")

	java(javaSet, "1", 2, "PUBLISH")
	waiting = wait()
	if set, err := l.Delete(ctx); !set || err != nil {
		t.Fatal(set, err)
	}
	soon(waiting, errs.Deleted)
	told("1", "1")

	if set, err := l.TrySetCount(ctx, 2); !set || err != nil {
		t.Fatal(set, err)
	}
	waiting = wait()
	java(javaDelete, "1", "PUBLISH")
	soon(waiting, nil) // nil, because Redisson's count says that there is no latch
	told("1", "1")
}

// scripts returns how many scripts the server has run.
func scripts(t *testing.T, rdb *redis.Client) (n int) {
	t.Helper()
	info, err := rdb.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, calls := range scriptCalls.FindAllStringSubmatch(info, -1) {
		some, _ := strconv.Atoi(calls[1])
		n += some
	}
	return n
}

var scriptCalls = regexp.MustCompile(`cmdstat_eval\w*:calls=([0-9]+)`)

// A bounded wait says that the wait itself ended.
func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	redistest.Undisturbed(t, 10*time.Millisecond, func(t testing.TB) {
		rdb := redistest.Server(t).Client(t)
		l := New(enginetest.New(t, rdb), "l", "l")
		if set, err := l.TrySetCount(t.Context(), 1); !set || err != nil {
			t.Fatal(set, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := l.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errs.Busy) {
			t.Errorf("%v", err)
		}
	})
}
