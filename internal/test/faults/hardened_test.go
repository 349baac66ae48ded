// Servers as people harden them: rights and configuration files from public reports.

package faults

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/lockertest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/once"
	"github.com/holdfast-go/holdfast/shards"
)

// hardening is the rules of a user, or the commands that a configuration file takes away.
type hardening struct{ rules, renamed string }

// hardened are those of the reports.
var hardened = map[string]hardening{
	"a tutorial's rules":             {rules: "~* &* +@all -keys -flushall -flushdb -pexpire -del -config -shutdown -debug -srem -rename"},
	"types of data, not keyspace":    {rules: "~* &* +@read +@hash +@string +@sortedset +@scripting +@pubsub +@connection +time"},
	"read and write":                 {rules: "~* +@read +@write -@admin -@dangerous"},
	"a service's":                    {rules: "~* +@all -@dangerous -@blocking -@connection -@pubsub +publish"},
	"not dangerous, no channels":     {rules: "~* +@all -@dangerous resetchannels"},
	"a prefix":                       {rules: "~app:* +@all"},
	"a prefix, with channels":        {rules: "~app:* &app:* +@all"},
	"a word within, with channels":   {rules: "~*app:* &*app:* +@all"},
	"the tutorial's file":            {renamed: "PEXPIRE DEL"},
	"a file without DEL":             {renamed: "DEL"},
	"a file without HDEL":            {renamed: "HDEL"},
	"a file without ZREM":            {renamed: "ZREM"},
	"a file without SET":             {renamed: "SET"},
	"a file without TIME":            {renamed: "TIME"},
	"a file without PTTL":            {renamed: "PTTL"},
	"a file without EVALSHA":         {renamed: "EVALSHA"},
	"a file without scripts":         {renamed: "EVALSHA EVAL SCRIPT"},
	"a file without messages":        {renamed: "PUBLISH SUBSCRIBE PUBSUB"},
	"a file without administration":  {renamed: "SCRIPT CLIENT"},
	"a file with harmless renamings": {renamed: "CONFIG FLUSHALL FLUSHDB MIGRATE DEBUG SHUTDOWN SAVE BGSAVE"},
}

// uses have each kind used once, from what is set before to what is given back, and return the first error.
func uses() map[string]func(ctx context.Context, c *holdfast.Client, name string) error {
	all := map[string]func(ctx context.Context, c *holdfast.Client, name string) error{
		"semaphore": func(ctx context.Context, c *holdfast.Client, name string) error {
			s := c.Semaphore(name)
			if _, err := s.TrySetPermits(ctx, 1); err != nil {
				return err
			}
			if err := s.TryAcquire(ctx, 1); err != nil {
				return err
			}
			return s.Release(ctx, 1)
		},
		"latch": func(ctx context.Context, c *holdfast.Client, name string) error {
			if _, err := c.Latch(name).TrySetCount(ctx, 1); err != nil {
				return err
			}
			_, err := c.Latch(name).CountDown(ctx)
			return err
		},
		"barrier": func(ctx context.Context, c *holdfast.Client, name string) error {
			_, err := c.Barrier(name, 1).Await(ctx)
			return err
		},
		"limiter": func(ctx context.Context, c *holdfast.Client, name string) error {
			return c.Limiter(name, limiter.Rate(100, time.Second)).Wait(ctx, 1)
		},
		"shards": func(ctx context.Context, c *holdfast.Client, name string) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			begun := false
			err := c.Shards(name, 1).Run(ctx, func(context.Context, *shards.Shard) error {
				begun = true
				cancel()
				return nil
			})
			if begun {
				return nil
			}
			return err
		},
		"leader": func(ctx context.Context, c *holdfast.Client, name string) error {
			return c.Leader(name).Run(ctx, func(context.Context, *leader.Term) error { return nil })
		},
		"once": func(ctx context.Context, c *holdfast.Client, name string) error {
			_, err := once.Value(ctx, c.Once(name), "key", func(context.Context) (int, error) { return 1, nil })
			return err
		},
		"tick": func(ctx context.Context, c *holdfast.Client, name string) error {
			_, err := c.Tick(ctx, name, time.Now(), time.Minute)
			return err
		},
	}
	for _, kind := range lockertest.Kinds {
		all[kind.Name] = func(ctx context.Context, c *holdfast.Client, name string) error {
			if kind.Prepare != nil {
				if err := kind.Prepare(ctx, c, name); err != nil {
					return err
				}
			}
			l, err := kind.Locker(c, name).Lock(ctx)
			if err != nil {
				return err
			}
			return errors.Join(l.Extend(ctx, time.Minute), l.Release(ctx))
		}
	}
	return all
}

// named is what an error says of what was refused.
var named = regexp.MustCompile("['`][a-zA-Z|]+['`]|access a key|access one of the keys|access a channel|access one of the channels")

// With each of these every kind either works, or says which command or key was refused; and nothing stays
// without an expiry, but what somebody has set. The long run also takes each command of the scripts away.
func TestEachKindWhereUsersAndServersAreHardened(t *testing.T) {
	all := maps.Clone(hardened)
	commands := commandsOfScripts(t)
	for _, command := range commands[:redistest.Count(t, len(commands))] {
		all["without "+command] = hardening{rules: "~* &* +@all -" + strings.ToLower(command)}
	}
	plain := redistest.Server(t)
	few := make(chan struct{}, 8) // how many are tried at a time
	var tried sync.WaitGroup
	for what, how := range all {
		s, as := plain, func(*redis.Options) {}
		if how.rules != "" {
			as = clienttest.User(t, s, strings.ReplaceAll(what, " ", "-"), strings.Fields(how.rules)...)
		} else {
			var args []string
			for _, command := range strings.Fields(how.renamed) {
				args = append(args, "--rename-command", command, "")
			}
			s = redistest.Server(t, args...)
		}
		few <- struct{}{}
		tried.Go(func() {
			defer func() { <-few }()
			useEachKind(t, what, how.rules != "", s, as)
		})
	}
	tried.Wait()
}

func useEachKind(t *testing.T, what string, byRights bool, s *redistest.Proc, as func(*redis.Options)) {
	var kinds sync.WaitGroup
	for kind, use := range uses() {
		kinds.Go(func() {
			var log redistest.Log
			c := clienttest.OpenClient(t, s.Client(t, as), holdfast.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			goesOn := kind == "leader" || kind == "shards" // until its context ends, and logs why it does not work
			if goesOn {
				ctx, cancel = context.WithTimeout(ctx, 3*time.Second)
				defer cancel()
			}
			err := use(ctx, c, "app:"+what+":"+kind)
			says := fmt.Sprint(err)
			if goesOn {
				says += log.String()
			}
			if err != nil && !named.MatchString(says) {
				t.Errorf("%s, %s: %s", what, kind, says)
			}
			if !goesOn && byRights && err != nil && !errors.Is(err, holdfast.ErrDenied) {
				t.Errorf("%s, %s: it does not match ErrDenied: %s", what, kind, says)
			}
		})
	}
	kinds.Wait()
	for _, key := range s.Admin().Keys(t.Context(), "*app:"+what+":*").Val() {
		set := strings.HasPrefix(key, "holdfast_stripes:") || strings.Contains(key, ":permit") ||
			strings.Contains(key, ":semaphore") || strings.Contains(key, ":latch")
		if s.Admin().PTTL(t.Context(), key).Val() == -1 && !set { // -2: it has just gone
			t.Errorf("%s: %q stays for ever", what, key)
		}
	}
}
