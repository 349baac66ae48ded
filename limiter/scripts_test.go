// These tests run each script on its own, and check what it answers and what it leaves. The limit may be absent,
// full, in debt, waited for, set to another rate, or foreign. The script may run twice, late, on a clock that was
// set, or may fail midway.

package limiter

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/scripttest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const limit = "holdfast_limit:{l}"

// run is one run of a script.
type run struct {
	script *conn.Script
	args   []any
}

// take asks for n units at 10 a second with a burst of 5, and would wait for ms.
func take(id string, n, ms int) run {
	return run{takeScript, []any{id, n, n, ms * 1000, "10 1000000 5 0", 100000, 500000}}
}

// part asks for 1 to n units.
func part(id string, n int) run {
	return run{takeScript, []any{id, n, 1, 0, "10 1000000 5 0", 100000, 500000}}
}

// by is take by a caller that knows of another rate: 20 a second with a burst of 5, set at rev.
func by(rev any, id string, n, ms int) run {
	return run{takeScript, []any{id, n, n, ms * 1000, fmt.Sprint("20 1000000 5 ", rev), 50000, 250000}}
}

func giveBack(id string, n, anyway int) run { return run{giveBackScript, []any{id, n, anyway, 0}} }

func set(count, burst int) run {
	return run{setScript, []any{fmt.Sprintf("%d 1000000 %d", count, burst), "PUBLISH", "c", 50}}
}

func (r run) on(rdb *redis.Client, notAfter string) ([]any, error) {
	return rdb.Eval(context.Background(), r.script.Source(), []string{limit}, append([]any{notAfter}, r.args...)...).Slice()
}

// standing is a limit that has ms of debt since ago ms. rest is what follows the debt.
func standing(now time.Time, ago, debt int, rest string) string {
	last := now.Add(-time.Duration(ago) * time.Millisecond)
	return fmt.Sprintf("%d %d %s", last.UnixMicro(), debt*1000, rest)
}

// left returns the limit as text: its debt in ms, and what follows.
func left(t testing.TB, rdb *redis.Client, now time.Time) string {
	t.Helper()
	value := rdb.Get(context.Background(), limit).Val()
	if value == "" {
		return ""
	}
	var micros int64
	var debt float64
	if _, err := fmt.Sscan(value, &micros, &debt); err != nil {
		t.Fatalf("%q: %v", value, err)
	}
	words := strings.Fields(value)
	if len(words[6]) > 9 {
		words[6] = "new"
	}
	if micros != now.UnixMicro() {
		words = append(words, "untouched")
	}
	return fmt.Sprint(debt/1000, " ", strings.Join(words[2:], " "))
}

const (
	rest  = "7 10 1000000 5 0"    // taken, and the rate of take
	rests = "7 10 1000000 5 50"   // set at 50
	three = " c b:2 a"            // the last requests
	month = 30 * 24 * 3600 * 1000 // ms
)

func TestScripts(t *testing.T) {
	for _, tc := range []struct {
		what  string
		run   run
		ago   int    // ms since the last change
		debt  int    // ms, then
		given string // what follows the debt; "": there is no limit
		reply string
		after string
		ttl   int64  // in ms
		again string // the reply of a second run; "": the same
	}{
		{"nothing", take("x", 1, 0), 0, 0, "", "1 100000 0 1 1", "100 1 10 1000000 5 0 x", 100, ""},
		{"nothing, all at once", take("x", 5, 0), 0, 0, "", "1 500000 0 5 5", "500 5 10 1000000 5 0 x:5", 500, ""},
		{"nothing, more than burst", take("x", 6, 9000), 0, 0, "", "2 0 0 0 0", "", -2, ""},
		{"a debt", take("x", 1, 0), 0, 300, rest + three, "1 400000 0 8 1", "400 8 10 1000000 5 0 x c b:2", 400, ""},
		{"a debt that is paid off in part", take("x", 1, 0), 250, 300, rest, "1 150000 0 8 1", "150 8 10 1000000 5 0 x", 150, ""},
		{"a debt that is paid off", take("x", 1, 0), 350, 300, rest, "1 100000 0 8 1", "100 8 10 1000000 5 0 x", 100, ""},
		{"the clock was set back", take("x", 1, 0), -90000, 300, rest, "1 400000 0 8 1", "400 8 10 1000000 5 0 x", 400, ""},
		{"the clock was set ahead", take("x", 5, 0), 90000, 9000, rest, "1 500000 0 12 5", "500 12 10 1000000 5 0 x:5", 500, ""},
		{"room for less", take("x", 3, 0), 0, 300, rest, "0 300000 0 7 0", "300 7 10 1000000 5 0", 1000, ""},
		{"room in a ms, too late", take("x", 1, 0), 0, 401, rest, "0 401000 0 7 0", "401 7 10 1000000 5 0", 1000, ""},
		{"room in time", take("x", 3, 100), 0, 300, rest, "1 600000 0 10 3", "600 10 10 1000000 5 0 x:3", 600, ""},
		{"room just too late", take("x", 3, 99), 0, 300, rest, "0 300000 0 7 0", "300 7 10 1000000 5 0", 1000, ""},
		{"behind those that wait", take("x", 1, 9000), 0, 4000, rest, "1 4100000 0 8 1", "4100 8 10 1000000 5 0 x", 4100, ""},
		{"taken by an earlier sending", take("c", 1, 0), 0, 300, rest + three, "1 300000 0 7 1", "300 7 10 1000000 5 0 c b:2 a", 1000, ""},
		{"taken, and others since", take("a", 1, 0), 0, 4000, rest + three, "1 3700000 0 4 1", "4000 7 10 1000000 5 0 c b:2 a", 1000, ""},
		{"an id that ends as another", take("cc", 1, 0), 0, 300, rest + three, "1 400000 0 8 1", "400 8 10 1000000 5 0 cc c b:2", 400, ""},
		{"a look at nothing", take("x", 0, 0), 0, 0, "", "1 0 0 0 0", "", -2, ""},
		{"a look", take("x", 0, 0), 0, 300, rest, "1 300000 0 7 0", "300 7 10 1000000 5 0", 1000, ""},

		{"a share of what is there", part("x", 4), 0, 250, rest, "1 450000 0 9 2", "450 9 10 1000000 5 0 x:2", 450, ""},
		{"all of a share", part("x", 4), 0, 0, "", "1 400000 0 4 4", "400 4 10 1000000 5 0 x:4", 400, ""},
		{"nothing of a share", part("x", 4), 0, 401, rest, "0 401000 0 7 0", "401 7 10 1000000 5 0", 1000, ""},

		{"the rate was set", take("x", 1, 0), 0, 300, "7 20 1000000 9 50", "1 350000 50 8 1 20 1000000 9", "350 8 20 1000000 9 50 x", month + 350, ""},
		{"a look where the rate was set", take("x", 0, 0), 0, 300, "7 20 1000000 9 50", "1 300000 50 7 0 20 1000000 9", "300 7 20 1000000 9 50", month + 300, ""},
		{"an older rate was set", by(60, "x", 1, 0), 0, 300, rests, "1 200000 0 8 1", "200 8 20 1000000 5 60 x", 200, ""},
		{"a look by a newer rate", by(60, "x", 0, 0), 0, 300, rests, "1 150000 0 7 0", "150 7 20 1000000 5 60", 150, ""},
		{"a newer rate was set", by(40, "x", 1, 0), 0, 300, rests, "1 400000 50 8 1 10 1000000 5", "400 8 10 1000000 5 50 x", month + 400, ""},
		{"another option", by(0, "x", 1, 0), 0, 300, rest, "1 200000 0 8 1", "200 8 20 1000000 5 0 x", 200, ""},

		{"nothing", giveBack("x", 1, 0), 0, 0, "", "0", "", -2, ""},
		{"another's", giveBack("x", 1, 0), 0, 300, rest + three, "0", "300 7 10 1000000 5 0 c b:2 a", 1000, ""},
		{"the last", giveBack("c", 1, 0), 0, 300, rest + three, "1", "200 6 10 1000000 5 0 b:2 a", 200, "0"},
		{"others since", giveBack("b", 2, 0), 0, 300, rest + three, "0", "300 7 10 1000000 5 0 c b:2 a", 1000, ""},
		{"others since, all the same", giveBack("b", 2, 1), 0, 300, rest + three, "1", "100 5 10 1000000 5 0 c a", 100, "0"},
		{"less than was taken", giveBack("b", 1, 1), 0, 300, rest + three, "1", "200 6 10 1000000 5 0 c a", 200, "0"},
		{"more than was taken", giveBack("c", 9, 0), 0, 300, rest + three, "1", "200 6 10 1000000 5 0 b:2 a", 200, "0"},
		{"more than is owed", giveBack("b", 2, 1), 250, 300, rest + three, "1", "0 5 10 1000000 5 0 c a", 1, "0"},
		{"the rate was set", giveBack("c", 1, 0), 0, 300, rests + three, "1", "200 6 10 1000000 5 50 b:2 a", month + 200, "0"},

		{"nothing", set(20, 9), 0, 0, "", "1 new", "0 0 20 1000000 9 new", month + 1, "0"},
		{"a debt", set(20, 9), 0, 300, rest + three, "1 new", "150 7 20 1000000 9 new c b:2 a", month + 150, "0"},
		{"a rate was set since", set(20, 9), 0, 300, "7 10 1000000 5 51", "0", "300 7 10 1000000 5 51", 1000, ""},
		{"those that wait", set(5, 5), 100, 900, rest, "1 new", "1300 7 5 1000000 5 new", month + 1300, "0"},
		{"those that wait for long", set(5, 4), 0, 3500, rest, "1 new", "5550 7 5 1000000 4 new", month + 5550, "0"},
	} {
		t.Run(tc.run.script.Name()+"/"+tc.what, func(t *testing.T) {
			scripttest.OnMini(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client) {
				now := time.Now()
				if tc.given != "" {
					rdb.Set(t.Context(), limit, standing(now, tc.ago, tc.debt, tc.given), time.Second)
				}
				send := func() string { return scripttest.TextAnew(tc.run.on(rdb, scripttest.Never)) }
				left := func() string {
					return fmt.Sprint(strings.TrimSuffix(left(t, rdb, now), " untouched"), " for ", rdb.Do(t.Context(), "PTTL", limit).Val())
				}
				scripttest.Twice(t, tc.what, tc.reply, tc.again, fmt.Sprint(tc.after, " for ", tc.ttl), send, left)
			})
		})
	}
}

// What comes late, or finds another type of value, does nothing.
func TestScriptsThatChangeNothing(t *testing.T) {
	scripttest.OnMini(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client) {
		check := func(r run, notAfter, want string) {
			scripttest.Unchanged(t, mini, r.script.Name(), want, func() ([]any, error) { return r.on(rdb, notAfter) })
		}
		for _, value := range []string{"", standing(time.Now(), 0, 300, rest+three), "17", "x"} {
			if rdb.FlushAll(t.Context()); value != "" {
				rdb.Set(t.Context(), limit, value, time.Second)
			}
			check(take("x", 1, 0), "1", "[-1 ")
			check(set(20, 9), "1", "[-1 ")
			if len(value) == 1 || len(value) == 2 {
				for _, r := range []run{take("x", 1, 0), take("x", 0, 0), giveBack("c", 1, 0), set(20, 9)} {
					check(r, scripttest.Never, "WRONGTYPE")
				}
			}
		}
		rdb.FlushAll(t.Context())
		rdb.HSet(t.Context(), limit, "f", "v")
		for _, r := range []run{take("x", 1, 0), giveBack("c", 1, 0), set(20, 9)} {
			check(r, scripttest.Never, "WRONGTYPE")
		}
	})
}

// Whichever command of a script fails, the limit is as it was: it has one write.
func TestFailingMidway(t *testing.T) {
	scripttest.OnMini(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client) {
		for _, r := range []run{take("x", 1, 0), giveBack("c", 1, 0), set(20, 9)} {
			given := func() { rdb.Set(t.Context(), limit, standing(time.Now(), 0, 300, rest+three), time.Second) }
			send := func() error { return redistest.Err(r.on(rdb, scripttest.Never)) }
			scripttest.AllOrNothing(t, mini, r.script.Name(), given, send, mini.Snapshot)
		}
	})
}

// A third of a microsecond is not lost, however often it is added, and however long the debt is.
func TestFractionsAddUp(t *testing.T) {
	scripttest.OnMini(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client) {
		takes := func(times, count int, period float64) string {
			rdb.FlushAll(t.Context())
			for i := range times {
				rate, each := fmt.Sprintf("%d %.0f 5 0", count, period), period/float64(count)
				r := run{takeScript, []any{fmt.Sprint("x", i), 1, 1, 1 << 50, rate, each, 5 * each}}
				redistest.Must(t, redistest.Err(r.on(rdb, scripttest.Never)))
			}
			return left(t, rdb, time.Now())
		}
		if got := takes(300, 7, 86400e6); !strings.HasPrefix(got, "3.7028571428") {
			t.Errorf("300 units at 7 a day owe %q", got)
		}
		if got := takes(3000, 3, 100); !strings.HasPrefix(got, "99.99") && !strings.HasPrefix(got, "100") {
			t.Errorf("3000 units at 3 in 100 µs owe %q, want 100 ms", got)
		}
	})
}
