package semaphore

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) {
	redistest.Main(m)
}

// asker runs scripts as a server sees them, one sending at a time.
type asker struct {
	t   testing.TB
	rdb redis.UniversalClient
}

// now returns the server's clock in microseconds.
func (a asker) now() int64 {
	a.t.Helper()
	at, err := a.rdb.Time(context.Background()).Result()
	if err != nil {
		a.t.Fatal(err)
	}
	return at.UnixMicro()
}

// ask runs a script in time, and returns its reply without the server's clock.
func (a asker) ask(source string, keys []string, args ...any) string {
	a.t.Helper()
	return a.askBy(time.Minute, source, keys, args...)
}

// askBy is ask with a not-after.
func (a asker) askBy(left time.Duration, source string, keys []string, args ...any) string {
	a.t.Helper()
	argv := append([]any{a.now() + left.Microseconds()}, args...)
	reply, err := a.rdb.Eval(context.Background(), source, keys, argv...).Slice()
	if err != nil {
		return code(err)
	}
	if len(reply) < 2 {
		a.t.Fatalf("a reply without the time: %v", reply)
	}
	return fmt.Sprint(append(reply[:1:1], reply[2:]...)...)
}

// code returns the kind of error that a script answered with.
func code(err error) string {
	for _, code := range []string{"WRONGTYPE", "NOPERMITS", "OOM", "injected", "NOPERM", "can't run this command"} {
		if strings.Contains(err.Error(), code) {
			return code
		}
	}
	return err.Error()
}

// state returns what is at the keys, with expiries rounded to seconds.
func (a asker) state(keys ...string) string {
	a.t.Helper()
	ctx := context.Background()
	var all []string
	for _, key := range keys {
		var what string
		switch kind := a.rdb.Type(ctx, key).Val(); kind {
		case "none":
			continue
		case "string":
			what = a.rdb.Get(ctx, key).Val()
		case "hash":
			fields := a.rdb.HGetAll(ctx, key).Val()
			if _, ok := fields["since"]; ok {
				fields["since"] = "T"
			}
			what = fmt.Sprint(fields)
		case "zset":
			what = fmt.Sprint(a.rdb.ZRange(ctx, key, 0, -1).Val())
		default:
			what = kind
		}
		if ttl := a.rdb.PTTL(ctx, key).Val(); ttl > 0 {
			what += fmt.Sprintf(" for %v", ttl.Round(10*time.Second))
		}
		all = append(all, key+"="+what)
	}
	return strings.Join(all, " | ")
}

// onServers runs a test on the embedded server and on a real server.
func onServers(t *testing.T, test func(t *testing.T, rdb *redis.Client)) {
	t.Run("miniredis", func(t *testing.T) { test(t, redistest.Mini(t).Client()) })
	t.Run("redis", func(t *testing.T) { test(t, redistest.Server(t).Client(t)) })
}
