// A user with the rights of the line can do what the kinds do, and the line has no more commands than the documents.

package acl

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/once"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// as makes the user that a line describes, and returns a Client with its rights.
func as(t *testing.T, server *redistest.Proc, line string) *holdfast.Client {
	t.Helper()
	admin := server.Admin()
	admin.Do(t.Context(), "ACL", "DELUSER", "holdfast")
	var args []any
	for word := range strings.FieldsSeq(line) {
		args = append(args, word)
	}
	if err := admin.Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return clienttest.OpenClient(t, server.Client(t, theUser))
}

// theUser has a connection log in as the user that a line describes.
func theUser(o *redis.Options) { o.Username, o.Password = "holdfast", "PASSWORD" }

func line(t *testing.T, pattern string, kinds ...string) string {
	t.Helper()
	text, err := SetUser("holdfast", "", []string{pattern}, kinds, false)
	redistest.Must(t, err)
	return text
}

func TestTheRightsOfAKindDo(t *testing.T) {
	server := redistest.Server(t)
	for pattern, name := range map[string]string{
		"orders:*": "orders:", "{user7}:*": "{user7}:", "{user*}:*": "{user7}:", "our orders:*": "our orders:",
	} {
		for _, kind := range Kinds() {
			client := as(t, server, line(t, pattern, kind, "check"))
			found, err := client.Check(t.Context(), name)
			if err != nil {
				t.Errorf("%s %s: %v", pattern, kind, err)
			}
			for _, f := range found {
				if f.Kind == kind || f.Problem == holdfast.Rights && f.Kind == "" {
					t.Errorf("%s %s: %v", pattern, kind, f)
				}
			}
		}
	}
}

// What Check does not try: read leases of others, stripes, ticks, identities and Inspect.
func TestTheRightsOfTheRestDo(t *testing.T) {
	server := redistest.Server(t)
	ctx := redistest.Within(t, time.Minute)
	clienttest.Grab(t, clienttest.OpenClient(t, server.Client(t), holdfast.WithIdentity("pod-1")).Mutex("orders:held"))
	redistest.Eventually(t, time.Minute, "the identity stands in Redis", func() error {
		if len(server.Admin().Keys(ctx, clients).Val()) == 0 {
			return errors.New("no key")
		}
		return nil
	})
	held := func(l *holdfast.Lease, err error) error {
		if err == nil {
			err = l.Release(ctx)
		}
		return err
	}
	for kind, do := range map[string]func(c *holdfast.Client) error{
		"striped": func(c *holdfast.Client) error { return held(c.Striped("orders:x", 3).For("key").Lock(ctx)) },
		"rwlock": func(c *holdfast.Client) error {
			return errors.Join(held(c.RWMutex("orders:x").RLock(ctx)), held(c.RWMutex("orders:x").Lock(ctx)))
		},
		"once": func(c *holdfast.Client) error {
			_, ticked := c.Tick(ctx, "orders:x", time.Now(), time.Minute)
			return errors.Join(ticked, once.Do(ctx, c.Once("orders:x"), "key", func(context.Context) error { return nil }))
		},
		"inspect": func(c *holdfast.Client) error {
			all := errors.New("not found")
			for i, err := range c.InspectAll(ctx, "orders:held") {
				if all = err; len(i.Holders) != 1 || i.Holders[0].Who != "pod-1" {
					all = errors.Join(all, errors.New(i.String()))
				}
			}
			return all
		},
	} {
		if err := do(as(t, server, line(t, "orders:*", kind))); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// Who may release by force may note that, and who may inspect may read it.
func TestTheRightsToNoteAReleaseByForceDo(t *testing.T) {
	server := redistest.Server(t)
	rdb := server.Client(t, theUser)
	for _, name := range []string{"orders:x", "{user7}:x"} {
		pattern := strings.Replace(name, "x", "*", 1)
		as(t, server, line(t, pattern, "release"))
		if err := audit.Write(t.Context(), rdb, "", name, audit.Record{At: time.Now()}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		redistest.Is(t, "Write", audit.Write(t.Context(), rdb, "", "other", audit.Record{}), holdfast.ErrDenied)
		as(t, server, line(t, pattern, "inspect"))
		if all, err := audit.Read(t.Context(), rdb, "", name, time.Now()); err != nil || len(all) != 1 {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
}

// The documents have the same commands.
func TestTheCommandsAreThoseOfTheDocuments(t *testing.T) {
	t.Chdir("../../../..") // the documents are those of the library's module
	every, of := doctest.DocumentedRights(t)
	for kind, documented := range map[string]string{
		"mutex": "Mutex", "fairmutex": "FairMutex", "striped": "Striped", "rwlock": "RWMutex",
		"semaphore": "Semaphore", "permits": "PermitSemaphore", "latch": "Latch", "barrier": "Barrier", "limiter": "Limiter", "shards": "Shards",
		"once": "Once", "leader": "Leader", "quorum": "Quorum",
	} {
		want := commandsIn(append(slices.Clone(every), of[documented]...))
		if kind == "fairmutex" { // its queries have a row of their own
			want = commandsIn(append(strings.Fields("+zcount +zrank +zrangebyscore"), want...))
		}
		if kind == "once" {
			want = commandsIn(append(want, of["Tick"]...))
		}
		if got := commandsIn(strings.Fields(line(t, "orders:*", kind))); !slices.Equal(got, want) {
			t.Errorf("%s:\n%q, documented\n%q", kind, got, want)
		}
	}
}

// commandsIn returns the commands among rules, each once, sorted.
func commandsIn(rules []string) (commands []string) {
	for _, rule := range rules {
		if rule[0] == '+' {
			commands = append(commands, rule)
		}
	}
	slices.Sort(commands)
	return slices.Compact(commands)
}

func TestSetUser(t *testing.T) {
	got, err := SetUser("app", "", []string{"orders:*", "a b"}, []string{"semaphore"}, true)
	want := `ACL SETUSER app on >PASSWORD resetchannels ` +
		`~orders:* ~holdfast_permits:{orders:*} ~holdfast_calls:{orders:*}:* ` +
		`~a?b ~holdfast_permits:{a?b} ~holdfast_calls:{a?b}:* &redisson_sc:{orders:*} &redisson_sc:{a?b} ` +
		`+evalsha +eval +time +ping +publish +subscribe +unsubscribe ` +
		`+cluster +asking +pubsub +spublish +ssubscribe +sunsubscribe +get +incrby +decrby +pexpire +hset +hget +hdel`
	if got != want || err != nil {
		t.Errorf("%s, %v\nwant\n%s", got, err, want)
	}
	for pattern, key := range map[string]string{
		"a}b*": " ~holdfast_lock_queue:{*}:a}b* ", "{user*}:x": " ~holdfast_lock_queue:{*}:{user*}:x ", "a\tb\u00a0": " ~holdfast_lock_queue:{a?b??} ",
	} {
		if got, err := SetUser("app", "", []string{pattern}, []string{"mutex"}, false); !strings.Contains(got, key) || err != nil {
			t.Errorf("%q: %s, %v", pattern, got, err)
		}
	}
	for _, bad := range []struct{ pattern, kind string }{
		{"", "mutex"}, {"holdfast_x", "mutex"}, {"a}b*", "latch"}, {"{}*", "rwlock"},
	} {
		if _, err := SetUser("app", "", []string{bad.pattern}, []string{bad.kind}, false); err == nil {
			t.Errorf("%q, %s: no error", bad.pattern, bad.kind)
		}
	}
	if err := Known([]string{"mutex", "nonsense"}); err == nil || Known(Kinds()) != nil {
		t.Error(err)
	}
}
