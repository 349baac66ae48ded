package latch

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) {
	redistest.Main(m)
}

func itoa(n int) string { return strconv.Itoa(n) }

// asker runs scripts as a server sees them, one sending at a time.
type asker struct {
	t   testing.TB
	rdb *redis.Client
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

// ask runs a script in time, and returns its reply without the server's clock. If the reply tells a
// generation, ask remembers it and shows it as "gen".
func (a asker) ask(left time.Duration, s step) string {
	a.t.Helper()
	argv := append([]any{a.now() + left.Microseconds()}, argsOf(s)...)
	reply, err := a.rdb.Eval(context.Background(), sources[s.script], keysOf(s.script), argv...).Slice()
	if err != nil {
		return code(err)
	}
	if s.script == "look" && reply[0] == int64(0) {
		return fmt.Sprintf("0 gen %v", reply[3])
	}
	return fmt.Sprint(append(reply[:1:1], reply[2:]...)...)
}

// code returns the kind of error that a script answered with.
func code(err error) string {
	for _, code := range []string{"WRONGTYPE", "OOM", "injected"} {
		if strings.Contains(err.Error(), code) {
			return code
		}
	}
	return err.Error()
}

// generations returns the states of the recorded generations, oldest first, for example "zdo".
func (a asker) generations() string {
	var states string
	for _, m := range a.rdb.ZRange(context.Background(), "generations", 0, -1).Val() {
		states += m[:1]
	}
	return states
}

// newest returns the number of the newest generation.
func (a asker) newest() string {
	members := a.rdb.ZRange(context.Background(), "generations", -1, -1).Val()
	if len(members) == 0 {
		return "0"
	}
	return strings.Split(members[0], ":")[1]
}

// state returns the count, the generations and the ledger.
func (a asker) state() string {
	ctx := context.Background()
	count, err := a.rdb.Get(ctx, "l").Result()
	if err != nil {
		count = "-"
	}
	for _, key := range []string{"generations", "calls"} {
		if a.rdb.PTTL(ctx, key).Val() == -1 {
			a.t.Errorf("%s stands without an expiry", key)
		}
	}
	return fmt.Sprintf("%s %s %v", count, a.generations(), a.rdb.HGetAll(ctx, "calls").Val())
}

// onServers runs a test on the embedded server and on a real server.
func onServers(t *testing.T, test func(t *testing.T, rdb *redis.Client)) {
	t.Run("miniredis", func(t *testing.T) { test(t, redistest.Mini(t).Client()) })
	t.Run("redis", func(t *testing.T) { test(t, redistest.Server(t).Client(t)) })
}
