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
	"github.com/holdfast-go/holdfast/internal/test/scripttest"
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

// ask runs a script in time, and returns its reply without the server's clock. If the reply tells a
// generation, ask remembers it and shows it as "gen".
func (a asker) ask(left time.Duration, s step) string {
	a.t.Helper()
	reply, err := scripttest.Send(a.t, a.rdb, left, sources[s.script], keysOf(s.script), argsOf(s)...)
	if err == nil && s.script == "look" && reply[0] == int64(0) {
		return fmt.Sprintf("0 gen %v", reply[3])
	}
	return scripttest.Text(reply, err)
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
	scripttest.Ends(a.t, a.rdb, "generations", "calls")
	return fmt.Sprintf("%s %s %v", count, a.generations(), a.rdb.HGetAll(ctx, "calls").Val())
}
