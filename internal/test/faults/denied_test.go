// A user may not run some of the commands that scripts use: nothing stays for ever.

package faults

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/lockertest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/once"
)

// commandsOfScripts are those that the library's scripts name, in capitals.
func commandsOfScripts(t *testing.T) []string {
	commands := map[string]bool{}
	for source := range world.ScriptNames(t) {
		for _, m := range regexp.MustCompile(`redis\.p?call\(\s*['"](\w+)['"]`).FindAllStringSubmatch(source, -1) {
			commands[strings.ToUpper(m[1])] = true
		}
	}
	if len(commands) < 20 {
		t.Fatalf("only %d commands", len(commands))
	}
	return slices.Sorted(maps.Keys(commands))
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
		"leader": func(ctx context.Context, c *holdfast.Client, name string, work func()) {
			_ = c.Leader(name).Run(ctx, func(context.Context, *leader.Term) error { work(); return nil })
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
					deny(t, w, kind, []string{"PEXPIRE", other}, do)
				}
			})
		})
	}
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
			if w.PTTL(key) < 0 && !strings.HasPrefix(key, "holdfast_stripes:") { // their number stays
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
