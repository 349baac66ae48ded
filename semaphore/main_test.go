package semaphore

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/scripttest"
)

func TestMain(m *testing.M) {
	redistest.Main(m)
}

// asker runs scripts as a server sees them, one sending at a time.
type asker struct {
	t   testing.TB
	rdb redis.UniversalClient
}

// ask runs a script in time, and returns its reply without the server's clock.
func (a asker) ask(source string, keys []string, args ...any) string {
	a.t.Helper()
	return a.askBy(time.Minute, source, keys, args...)
}

// askBy is ask with a not-after.
func (a asker) askBy(left time.Duration, source string, keys []string, args ...any) string {
	a.t.Helper()
	return scripttest.Text(scripttest.Send(a.t, a.rdb, left, source, keys, args...))
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
