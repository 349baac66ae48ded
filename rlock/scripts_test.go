// These tests run each script in each state: they show what it replies, what it leaves, and that a
// second run leaves the same.

package rlock

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/scripttest"
)

const (
	lockKey  = "{n}"
	tokenKey = "token:{n}"
	channel  = "channel:{n}"
	mine     = "6e0e2d3c-0000-4000-8000-000000000001:1"
	other    = "6e0e2d3c-0000-4000-8000-000000000002:1"
	third    = "6e0e2d3c-0000-4000-8000-000000000003:1"
)

// epoch is the beginning of a bubble on the server's clock.
const epoch int64 = 946684800000000

// some is a lock. Its calls run the scripts.
var some = newResource(new(engine.Engine), "n", lockKey, new(hold.Settings))

// held is a lock that holder holds, with that count and time to live, and the token 7; 0: without end.
func held(holder string, count int, ttl time.Duration) scripttest.State {
	lock := scripttest.State{{"HSET", lockKey, holder, count}, {"SET", tokenKey, 7, "PX", 60_000}}
	if ttl > 0 {
		lock = append(lock, []any{"PEXPIRE", lockKey, ttl.Milliseconds()})
	}
	return lock
}

var (
	absent = scripttest.State{}
	// expired is a lock that ran out: its token stays.
	expired = scripttest.State{{"SET", tokenKey, 7, "PX", 60_000}}
	// several is a lock of several holders, as a read/write lock is.
	several = append(held(other, 1, 10*time.Second), []any{"HSET", lockKey, third, 1})
	// brokenToken is a lock beside whose token another program has put something.
	brokenToken = append(held(other, 1, 10*time.Second), []any{"DEL", tokenKey}, []any{"LPUSH", tokenKey, "another program's"})
	wrongType   = scripttest.State{{"SET", lockKey, "precious", "PX", 60_000}}
)

// These are what is left at the lock's key.
const (
	nothing = ""
	kept    = scripttest.Kept
)

// by is a lock that a script has left with that holder, count and time to live; -1: without end.
func by(holder string, count int, ttl time.Duration) string {
	return fmt.Sprintf("%s=%d for %v", holder, count, ttl)
}

type row = scripttest.Row

func TestLockScript(t *testing.T) {
	args := []any{"now+1", mine, 30_000, 604_800_000}
	runTable(t, lockScript.Source(), []string{lockKey, tokenKey}, []row{
		{"absent", absent, args, "now", by(mine, 1, 30*time.Second), "[1 now 30000 now]"},
		{"mine, less left", held(mine, 2, 10*time.Second), args, "[1 now 30000 7]", by(mine, 2, 30*time.Second), ""},
		{"mine, more left", held(mine, 1, time.Minute), args, "[1 now 60000 7]", by(mine, 1, time.Minute), ""},
		{"mine, without end", held(mine, 1, 0), args, "[1 now 30000 7]", by(mine, 1, 30*time.Second), ""},
		{"another's", held(other, 1, 10*time.Second), args, "[0 now 10000 7 121007167504384 1073774592 2 1]", kept, ""},
		{"another's, without end", held(other, 1, 0), args, "[0 now -1 7 121007167504384 1073774592 2 1]", kept, ""},
		{"Java's", held("6E0E2D3C-0000-4000-8000-FFFFFFFFFFFF:-61", 1, 10*time.Second), args, "[0 now 10000 7 121007167504384 1073774592 281474976710655 -61]", kept, ""},
		{"another program's", held("somebody", 1, 10*time.Second), args, "[0 now 10000 7]", kept, ""},
		{"of too long a number", held(other+"000000000000000", 1, 10*time.Second), args, "[0 now 10000 7]", kept, ""},
		{"of several", several, args, "[0 now 10000 7]", kept, ""},
		{"another's, beside a broken token", brokenToken, args, "[0 now 10000 0 121007167504384 1073774592 2 1]", kept, ""},
		{"expired", expired, args, "now", by(mine, 1, 30*time.Second), "[1 now 30000 now]"},
		{"wrong type", wrongType, args, "WRONGTYPE", kept, ""},
		{"late", absent, []any{"now-1", mine, 30_000, 0}, "[-1 now]", nothing, ""},
		{"late, mine", held(mine, 1, 10*time.Second), []any{"now-1", mine, 30_000, 0}, "[-1 now]", kept, ""},
	})
}

// These are the token's own rules: it is greater than the last token, it is not behind the clock,
// and it has its expiry.
func TestLockScriptTokens(t *testing.T) {
	const hour, week = 3600_000_000, 7 * 24 * time.Hour
	for _, tc := range []struct {
		what  string
		last  int64         // the last token; 0: none
		life  time.Duration // of the last token; 0: for ever
		keep  int           // ARGV
		token int64
		ttl   time.Duration
	}{
		{"the first", 0, 0, 604_800_000, epoch, week},
		{"the first, for ever", 0, 0, 0, epoch, -1},
		{"after an old one", 12, time.Minute, 604_800_000, epoch, week},
		{"after one of the same microsecond", epoch, time.Minute, 604_800_000, epoch + 1, week + 2*time.Hour},
		{"after one from the future", epoch + hour, time.Minute, 604_800_000, epoch + hour + 1, week + 3*time.Hour},
		{"where Java keeps it for ever", 12, 0, 604_800_000, epoch, -1},
		{"for ever from now on", 12, time.Minute, 0, epoch, -1},
	} {
		scripttest.OnMini(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client) {
			if tc.last != 0 {
				rdb.Set(t.Context(), tokenKey, tc.last, tc.life)
			}
			reply, err := rdb.Eval(t.Context(), lockScript.Source(), []string{lockKey, tokenKey}, epoch+hour, mine, 30_000, tc.keep).Result()
			if got := strings.Trim(fmt.Sprint(reply), "]"); err != nil || !strings.HasSuffix(got, fmt.Sprint(tc.token)) {
				t.Errorf("%s: reply %v (%v), want the token %d", tc.what, reply, err, tc.token)
			}
			redistest.Equal(t, rdb.Get(t.Context(), tokenKey).Val(), fmt.Sprint(tc.token), "token %s, want %d (%s)", tc.token, tc.what)
			redistest.Equal(t, rdb.PTTL(t.Context(), tokenKey).Val(), tc.ttl, "its time to live %v, want %v (%s)", tc.ttl, tc.what)
		})
	}
}

// refused are the rows of what nobody may change with these arguments: what the caller does not hold.
func refused(args []any) []row {
	return []row{
		{"absent", absent, args, "[0 now]", nothing, ""},
		{"another's", held(third, 1, 10*time.Second), args, "[0 now]", kept, ""},
		{"expired", expired, args, "[0 now]", nothing, ""},
		{"wrong type", wrongType, args, "WRONGTYPE", kept, ""},
	}
}

func TestRecountScript(t *testing.T) {
	args := []any{"now+1", mine, 3, 30_000}
	same := []any{"now+1", mine, 3, 0}
	runTable(t, some.Recount(hold.Owner{}, 0, 0).Script.Source(), []string{lockKey}, append(refused(args), []row{
		{"mine, less left", held(mine, 2, 10*time.Second), args, "[1 now 30000]", by(mine, 3, 30*time.Second), ""},
		{"mine, more left", held(mine, 2, time.Minute), args, "[1 now 60000]", by(mine, 3, time.Minute), ""},
		{"mine, life as it is", held(mine, 4, 10*time.Second), same, "[1 now 10000]", by(mine, 3, 10*time.Second), ""},
		{"mine, without end", held(mine, 2, 0), args, "[1 now 30000]", by(mine, 3, 30*time.Second), ""},
		{"late", held(mine, 2, 10*time.Second), []any{"now-1", mine, 3, 30_000}, "[-1 now]", kept, ""},
	}...))
}

func TestRenewScript(t *testing.T) {
	args := []any{"now+1", mine, 30_000}
	runTable(t, some.Renew(hold.Owner{}, 0).Script.Source(), []string{lockKey}, append(refused(args), []row{
		{"mine, less left", held(mine, 2, 10*time.Second), args, "now", by(mine, 2, 30*time.Second), "[1 now 30000]"},
		{"mine, handed over", held(mine, 0, 2*time.Second), args, "now", by(mine, 1, 30*time.Second), "[1 now 30000]"},
		{"mine, more left", held(mine, 2, time.Minute), args, "[1 now 60000]", by(mine, 2, time.Minute), ""},
		{"mine, only looked at", held(mine, 2, 10*time.Second), []any{"now+1", mine, 0}, "[1 now 10000]", kept, ""},
		{"mine, without end, only looked at", held(mine, 1, 0), []any{"now+1", mine, 0}, "[1 now -1]", by(mine, 1, -1), ""},
		{"mine, without end", held(mine, 1, 0), args, "[1 now 30000]", by(mine, 1, 30*time.Second), ""},
		{"late", held(mine, 2, 10*time.Second), []any{"now-1", mine, 30_000}, "[-1 now]", kept, ""},
	}...))
}

func TestKeepScript(t *testing.T) {
	args := []any{"now+1", mine, 20_000}
	runTable(t, some.Keep(hold.Owner{}, 0).Script.Source(), []string{lockKey}, append(refused(args), []row{
		{"mine, less left", held(mine, 1, 10*time.Second), args, "[1 now 20000]", by(mine, 1, 20*time.Second), ""},
		{"mine, more left", held(mine, 1, time.Minute), args, "[1 now 20000]", by(mine, 1, 20*time.Second), ""},
		{"mine, without end", held(mine, 1, 0), args, "[1 now 20000]", by(mine, 1, 20*time.Second), ""},
		{"mine, counted", held(mine, 3, 10*time.Second), args, "[1 now 20000]", by(mine, 3, 20*time.Second), ""},
		{"late", held(mine, 1, 10*time.Second), []any{"now-1", mine, 20_000}, "[-1 now]", kept, ""},
	}...))
}

// For one lock, the script for many locks replies what the script for one lock replies.
func TestRenewManyScript(t *testing.T) {
	args := []any{"now+1", 30_000, mine}
	runTable(t, some.RenewMany().Source(), []string{lockKey}, []row{
		{"absent", absent, args, "[1 now 1 -2]", nothing, ""},
		{"mine, less left", held(mine, 2, 10*time.Second), args, "[1 now]", by(mine, 2, 30*time.Second), ""},
		{"mine, more left", held(mine, 2, time.Minute), args, "[1 now 1 60000]", by(mine, 2, time.Minute), ""},
		{"mine, only looked at", held(mine, 2, 10*time.Second), []any{"now+1", 0, mine}, "[1 now 1 10000]", kept, ""},
		{"mine, without end, only looked at", held(mine, 1, 0), []any{"now+1", 0, mine}, "[1 now 1 -1]", by(mine, 1, -1), ""},
		{"mine, without end", held(mine, 1, 0), args, "[1 now]", by(mine, 1, 30*time.Second), ""},
		{"another's", held(other, 1, 10*time.Second), args, "[1 now 1 -2]", kept, ""},
		{"expired", expired, args, "[1 now 1 -2]", nothing, ""},
		{"wrong type", wrongType, args, "[1 now 1 -3]", kept, ""},
		{"late", held(mine, 2, 10*time.Second), []any{"now-1", 30_000, mine}, "[-1 now]", kept, ""},
	})
	client, _, _ := strings.Cut(mine, ":")
	many := []any{"now+1", 30_000, client + ":0", mine, client + ":0", mine, client + ":3"}
	keys := []string{"{n}gone", lockKey, "{n}wrong", "{n}another's", "{n}mine too"}
	among := append(held(mine, 2, 10*time.Second), scripttest.Texts("SET {n}wrong precious", "HSET {n}another's "+other+" 1",
		"HSET {n}mine~too "+client+":3 1", "PEXPIRE {n}mine~too 60000")...)
	runTable(t, some.RenewMany().Source(), keys, []row{
		{"among others", among, many, "[1 now 1 -2 3 -3 4 -2 5 60000]", by(mine, 2, 30*time.Second), ""},
	})
}

// A server that takes no writes says so, also if no lock needs one.
func TestRenewManyOnAServerThatTakesNoWrites(t *testing.T) {
	rdb := redistest.Server(t).Client(t)
	held(mine, 1, time.Minute).Put(t, rdb)
	rdb.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1") // no server is there, so it keeps its data
	for _, length := range []int{30_000, 90_000} {
		args := []any{time.Now().Add(time.Minute).UnixMicro(), length, mine}
		reply, err := rdb.Eval(t.Context(), some.RenewMany().Source(), []string{lockKey}, args...).Result()
		if err == nil || !strings.Contains(err.Error(), "READONLY") {
			t.Errorf("%d ms: %v, %v, want READONLY", length, reply, err)
		}
	}
}

func TestMoveScript(t *testing.T) {
	args := []any{"now+1", other, mine, 30_000}
	runTable(t, some.Move(hold.Owner{}, hold.Owner{}, 0).Script.Source(), []string{lockKey, tokenKey}, append(refused(args), []row{
		{"the giver's", held(other, 1, 10*time.Second), args, "[1 now 30000 7]", by(mine, 1, 30*time.Second), ""},
		{"the giver's, more left", held(other, 1, time.Minute), args, "[1 now 60000 7]", by(mine, 1, time.Minute), ""},
		{"the giver's, counted", held(other, 4, time.Minute), args, "[1 now 60000 7]", by(mine, 1, time.Minute), ""},
		{"the giver's, life as it is", held(other, 1, 10*time.Second), []any{"now+1", other, mine, 0}, "[1 now 10000 7]", by(mine, 1, 10*time.Second), ""},
		{"the giver's, without end, life as it is", held(other, 1, 0), []any{"now+1", other, mine, 0}, "[1 now -1 7]", by(mine, 1, -1), ""},
		{"passed before", held(mine, 1, 10*time.Second), args, "[1 now 30000 7]", by(mine, 1, 30*time.Second), ""},
		{"the giver's, older than its token", append(held(other, 1, 10*time.Second), []any{"DEL", tokenKey}),
			[]any{"now+1", other, mine, 30_000, 604_800_000}, "[1 now 30000 now]", by(mine, 1, 30*time.Second), ""},
		{"late", held(other, 1, 10*time.Second), []any{"now-1", other, mine, 30_000}, "[-1 now]", kept, ""},
	}...))
}

func runTable(t *testing.T, source string, keys []string, rows []row) {
	t.Helper()
	holders := func(t testing.TB, rdb *redis.Client) string {
		return fmt.Sprint(slices.Sorted(slices.Values(rdb.HKeys(t.Context(), lockKey).Val())))
	}
	scripttest.Table{Source: source, Keys: keys, Word: word, Left: lockNow, Mends: holders}.Run(t, rows)
}

// word returns "now" for the server's time, and for a token that was made of it.
func word(_ int, v any) string {
	if n, number := v.(int64); number && n == time.Now().UnixMicro() {
		return "now"
	}
	return fmt.Sprint(v)
}

// lockNow returns what is at the lock's key, as by does.
func lockNow(t testing.TB, rdb *redis.Client) string {
	if fields := scripttest.Hash(t, rdb, lockKey); fields != "" {
		return fmt.Sprintf("%s for %v", fields, rdb.PTTL(t.Context(), lockKey).Val())
	}
	return rdb.Get(t.Context(), lockKey).Val()
}
