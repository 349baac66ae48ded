// A user may not run some of the commands that scripts use: nothing stays for ever.

package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/lockertest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/once"
	"github.com/holdfast-go/holdfast/shards"
)

// commandsOf are those that the scripts in these folders name, in capitals.
func commandsOf(t *testing.T, folders ...string) []string {
	t.Helper()
	commands := map[string]bool{}
	for _, folder := range folders {
		files := doctest.Glob(t, folder+"/lua/*.lua")
		if len(files) == 0 {
			t.Fatalf("%s has no scripts", folder)
		}
		for _, file := range files {
			for _, m := range regexp.MustCompile(`redis\.p?call\(\s*['"](\w+)['"]`).FindAllStringSubmatch(doctest.Read(t, file), -1) {
				commands[strings.ToUpper(m[1])] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(commands))
}

// commandsOfScripts are those that the scripts of all kinds name.
func commandsOfScripts(t *testing.T) []string {
	t.Helper()
	return commandsOf(t, "*", "internal/*")
}

// readers only look. What scripts undo depends on none of them but PTTL.
var readers = strings.Fields("EXISTS GET GETRANGE HEXISTS HGET HGETALL HKEYS HLEN HMGET HSCAN STRLEN TYPE " +
	"ZCARD ZCOUNT ZRANGE ZRANGEBYSCORE ZRANK ZREVRANGE ZREVRANGEBYSCORE ZSCAN ZSCORE")

// tried reports whether a pair of commands is denied: short runs leave those out that only look.
func tried(t *testing.T, one, other string) bool {
	return redistest.Count(t, 2) > 1 || !slices.Contains(readers, one) || !slices.Contains(readers, other)
}

// deeds are what a user does with a name, whatever the outcome: what work does lies in it.
func deeds() map[string]func(ctx context.Context, c *holdfast.Client, name string, work func()) {
	all := map[string]func(ctx context.Context, c *holdfast.Client, name string, work func()){
		"once": func(ctx context.Context, c *holdfast.Client, name string, work func()) {
			_, _ = once.Value(ctx, c.Once(name), "key", func(context.Context) (int, error) { work(); return 1, nil })
		},
		"tick": func(ctx context.Context, c *holdfast.Client, name string, work func()) {
			_, _ = c.Tick(ctx, name, time.Now(), time.Minute)
		},
		"barrier": func(ctx context.Context, c *holdfast.Client, name string, work func()) {
			_, _ = c.Barrier(name, 3).Await(ctx)
		},
		"limiter": func(ctx context.Context, c *holdfast.Client, name string, work func()) {
			l := c.Limiter(name, limiter.Rate(2, time.Second), limiter.Share(2))
			_ = l.Set(ctx, limiter.Rate(1, time.Second))
			_, _ = l.For("key").Allow(ctx, 1)
			if l.Wait(ctx, 1) == nil {
				work()
			}
		},
		"leader": func(ctx context.Context, c *holdfast.Client, name string, work func()) {
			_ = c.Leader(name).Run(ctx, func(context.Context, *leader.Term) error { work(); return nil })
		},
		"shards": func(ctx context.Context, c *holdfast.Client, name string, work func()) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			_ = c.Shards(name, 2).Run(ctx, func(context.Context, *shards.Shard) error {
				work()
				cancel()
				return nil
			})
		},
		"a lock that stays": func(ctx context.Context, c *holdfast.Client, name string, work func()) {
			if l, err := c.Mutex(name).Lock(ctx); err == nil {
				_ = l.AtLeast(ctx, 5*time.Second)
				work()
				_ = l.Release(ctx)
			}
		},
		"a lock that moves": func(ctx context.Context, c *holdfast.Client, name string, work func()) {
			if l, err := c.Mutex(name).Lock(ctx); err == nil {
				owner, _ := l.Detach(ctx)
				if l, err = c.Mutex(name).Attach(ctx, owner); err == nil {
					work()
					_ = l.Release(ctx)
				}
			}
		},
		"quorum": func(ctx context.Context, c *holdfast.Client, name string, work func()) {
			if l, err := holdfast.NewQuorum(name, []*holdfast.Client{c}).Lock(ctx); err == nil {
				work()
				_ = l.Release(ctx)
			}
		},
	}
	for _, kind := range lockertest.Kinds {
		if kind.Prepare != nil {
			continue // permits that are set stay; those whose leases are over, the next request takes back
		}
		all[kind.Name] = func(ctx context.Context, c *holdfast.Client, name string, work func()) {
			if l, err := kind.Locker(c, name).Lock(ctx); err == nil {
				if inner, err := kind.Locker(c, name).Lock(l.Context(ctx)); err == nil {
					work()
					_ = inner.Release(ctx)
				}
				_ = l.Release(ctx)
			}
		}
	}
	return all
}

// A user who may run neither PEXPIRE nor one other command takes each kind, alone and behind one who was
// granted it before. What is in Redis in the end has an expiry, so that those who have the rights get in.
func TestNothingStaysForEverWhicheverPairIsDenied(t *testing.T) {
	commands := commandsOfScripts(t)
	if redistest.RaceDetector { // it has nothing to see here: only those by which scripts undo what they did
		commands = []string{"DEL", "HDEL", "PTTL", "SET", "ZREM"}
	}
	for kind, do := range deeds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			world.Play(t, func(t *testing.T, w *world.World) {
				for _, other := range commands {
					if tried(t, other, other) {
						deny(t, w, kind, []string{"PEXPIRE", other}, do)
					}
				}
			})
		})
	}
}

// Inspect says of each kind what it can, whichever command the user may not run.
func TestInspectWhicheverCommandIsDenied(t *testing.T) {
	all := deeds()
	all["permits"] = func(ctx context.Context, c *holdfast.Client, name string, work func()) {
		permits := c.PermitSemaphore(name)
		_, _ = permits.TrySetPermits(ctx, 2)
		if l, err := permits.Acquire(ctx, 1); err == nil {
			work()
			_ = l.Release(ctx)
		}
	}
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		for kind, do := range all {
			holding, release := context.WithCancel(t.Context())
			var done sync.WaitGroup
			done.Go(func() { do(holding, p.Client, kind, func() { <-holding.Done() }) })
			synctest.Wait()
			for _, command := range commandsOf(t, "internal/inspect") {
				w.Mini.Deny(command)
				for i, err := range p.InspectAll(redistest.Within(t, 5*time.Second), "") {
					if err != nil && !errors.Is(err, holdfast.ErrDenied) {
						t.Errorf("%s without %s, %q: %v", kind, command, i.Name, err)
					}
				}
				w.Mini.Deny()
			}
			release()
			done.Wait()
			w.RDB.FlushDB(t.Context())
		}
		p.Close()
		w.RDB.FlushDB(t.Context())
	})
}

func deny(t *testing.T, w *world.World, kind string, pair []string, do func(context.Context, *holdfast.Client, string, func())) {
	rightful, p := w.Process(), w.Process()
	for _, held := range []bool{false, true} {
		name := fmt.Sprint(kind, " without ", pair, ", held: ", held)
		holding, release := context.WithTimeout(t.Context(), 2*time.Second)
		if held {
			go do(holding, rightful.Client, name, func() { <-holding.Done() })
			synctest.Wait()
		}
		w.Mini.Deny(pair...)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		go do(ctx, p.Client, name, func() {})
		do(ctx, p.Client, name, func() {})
		cancel()
		release()
		time.Sleep(40 * time.Second) // what was late, and what ends alone
		for _, key := range w.RDB.Keys(t.Context(), "*").Val() {
			if w.PTTL(key) < 0 && !strings.HasPrefix(key, "holdfast_stripes:") && key != "holdfast_quorum" { // they stay
				t.Errorf("%v, held: %v: %q stays for ever", pair, held, key)
			}
		}
		w.Mini.Deny()
		w.RDB.FlushDB(t.Context())
	}
	p.Close()
	rightful.Close()
	w.RDB.FlushDB(t.Context())
}

// A user who may not run two commands of a Semaphore's, of permits' or of a latch's scripts uses each, and may run
// them again soon after. Then nobody has a permit, and no latch is half counted.
func TestNothingIsTakenForGoodWhicheverPairIsDenied(t *testing.T) {
	commands := commandsOf(t, "semaphore", "latch", "internal/engine")
	if redistest.RaceDetector { // it has nothing to see here
		commands = []string{"DECRBY", "HSET", "PEXPIRE", "ZADD"}
	}
	for i, one := range commands {
		t.Run(one, func(t *testing.T) {
			t.Parallel()
			world.Play(t, func(t *testing.T, w *world.World) {
				rightful := w.Process()
				for _, other := range commands[i:] {
					if tried(t, one, other) {
						denyCounting(t, w, rightful.Client, false, one, other)
						denyCounting(t, w, rightful.Client, true, one, other)
					}
				}
				rightful.Close()
				w.RDB.FlushDB(t.Context())
			})
		})
	}
}

// denyCounting has a process use all three while the pair is denied. If it holds, it has taken from each before.
func denyCounting(t *testing.T, w *world.World, rightful *holdfast.Client, holds bool, pair ...string) {
	t.Helper()
	p := w.Process()
	defer p.Close()
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("without %v, holds: %t: %v", pair, holds, err)
		}
	}
	s, permits, latch := rightful.Semaphore("s"), rightful.PermitSemaphore("p", holdfast.Fixed(time.Second)), rightful.Latch("l")
	must(second(s.TrySetPermits(t.Context(), 3)), second(permits.TrySetPermits(t.Context(), 3)), second(latch.TrySetCount(t.Context(), 3)))
	must(second(permits.Acquire(t.Context(), 1))) // nobody gives it back: its lease is over soon
	var held *holdfast.Lease
	if holds {
		var err error
		held, err = p.PermitSemaphore("p").TryAcquire(t.Context(), 1)
		must(err, p.Semaphore("s").TryAcquire(t.Context(), 1))
	}
	time.Sleep(1100 * time.Millisecond)
	w.Mini.Deny(pair...)
	time.AfterFunc(2*time.Second, func() { w.Mini.Deny() })
	ctx := redistest.Within(t, 3*time.Second)
	var uses sync.WaitGroup
	uses.Go(func() {
		if holds || p.Semaphore("s").TryAcquire(ctx, 1) == nil {
			_ = p.Semaphore("s").Release(ctx, 1) // it goes on in the background
		}
	})
	uses.Go(func() {
		l, err := held, error(nil)
		if !holds {
			l, err = p.PermitSemaphore("p").TryAcquire(ctx, 1)
		}
		if err == nil {
			_ = l.Release(ctx)
		}
	})
	counted := 0
	uses.Go(func() {
		if _, err := p.Latch("l").CountDown(ctx); err == nil || errors.Is(err, holdfast.ErrUnknown) {
			counted = 1
		}
	})
	uses.Wait()
	time.Sleep(40 * time.Second) // what is leased is over
	again, err := permits.TryAcquire(t.Context(), 1)
	must(err)
	must(again.Release(t.Context()))
	free, err := s.Available(t.Context())
	must(err)
	leased, err := permits.Available(t.Context())
	must(err)
	left, err := latch.Count(t.Context())
	must(err)
	if free != 3 || leased != 3 || left != int64(3-counted) {
		t.Errorf("without %v, holds: %t: %d of 3 are free, and %d of 3 permits; the latch is at %d, counted down %d times",
			pair, holds, free, leased, left, counted)
	}
	for _, key := range w.RDB.Keys(t.Context(), "*").Val() {
		if w.PTTL(key) < 0 && key != "s" && key != "p" && key != "l" {
			t.Errorf("without %v, holds: %t: %q stays for ever", pair, holds, key)
		}
	}
	w.RDB.FlushDB(t.Context())
}
