// These tests run each script in each state: they show what it replies, what it leaves, and that a second run is safe.

package leader

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/scripttest"
)

const (
	lockKey   = "{n}"
	tokenKey  = "token:{n}"
	queueKey  = "queue:{n}"
	aliveKey  = "alive:{n}"
	openKey   = "open:{n}"
	recordKey = "record:{n}"
	namesKey  = "names:{n}"

	clientA = "6e0e2d3c-0000-8000-8000-000000000001"
	clientB = "6e0e2d3c-0000-8000-8000-000000000002"
	mine    = clientA + ":1"
	others  = clientB + ":1"
	third   = clientB + ":2"

	step = 10_000_000_000_000
)

var (
	allKeys  = []string{lockKey, tokenKey, queueKey, aliveKey, openKey, recordKey, namesKey}
	tellKeys = []string{lockKey, recordKey, namesKey, queueKey, "holdfast_pause:{" + lockKey + "}"}
	lookKeys = []string{lockKey, recordKey}
)

// state is what is in Redis. Times are in ms from now.
type state struct {
	holder   string // "" for nobody
	count    int
	record   string // whose it is; "" for nobody's
	priority int    // in the record
	asked    string // in the record
	queue    []string
	dead     []string // those in the queue whose places have lapsed
	gone     []string // those that have a name, but no place
}

// Put puts the state to a server.
func (s state) Put(t testing.TB, rdb redis.UniversalClient) {
	ctx := t.Context()
	now := rdb.Time(ctx).Val().UnixMilli()
	if s.holder != "" {
		rdb.HSet(ctx, lockKey, s.holder, s.count)
		rdb.PExpire(ctx, lockKey, 10*time.Second)
		rdb.Set(ctx, tokenKey, 7, time.Minute)
	}
	if s.record != "" {
		rdb.HSet(ctx, recordKey, "owner", s.record, "token", 7, "since", 5, "priority", s.priority, "identity", "who", "value", "at")
		if s.asked != "" {
			rdb.HSet(ctx, recordKey, "asked", s.asked)
		}
		rdb.PExpire(ctx, recordKey, 10*time.Second)
	}
	for i, owner := range append(slices.Clone(s.queue), s.dead...) {
		kept := 2000
		if slices.Contains(s.dead, owner) {
			kept = -1
		}
		rdb.ZAdd(ctx, queueKey, redis.Z{Member: owner, Score: float64(11 + i)})
		rdb.ZAdd(ctx, aliveKey, redis.Z{Member: owner, Score: float64(now + int64(kept))})
		rdb.HSet(ctx, namesKey, owner, "0 name of "+short(owner))
		for _, gone := range s.gone {
			rdb.HSet(ctx, namesKey, gone, "0 gone")
		}
		for _, key := range []string{queueKey, aliveKey, namesKey} {
			rdb.PExpire(ctx, key, 15*time.Second)
		}
	}
}

// broken is a state in which another program has put something at a key.
type broken struct {
	state
	key string
}

func (b broken) Put(t testing.TB, rdb redis.UniversalClient) {
	b.state.Put(t, rdb)
	rdb.Set(t.Context(), b.key, "precious", time.Minute)
}

// look returns what is in Redis as text: the lock, the record, the queue and the names. It fails the
// test if something has no expiry.
func look(t testing.TB, rdb *redis.Client) string {
	t.Helper()
	ctx := t.Context()
	var words []string
	for holder, count := range rdb.HGetAll(ctx, lockKey).Val() {
		words = append(words, short(holder)+"="+count)
	}
	words = append(words, "|")
	record := rdb.HGetAll(ctx, recordKey).Val()
	if len(record) > 0 {
		words = append(words, short(record["owner"])+" "+record["token"]+" "+record["identity"])
		if asked := record["asked"]; asked != "" {
			words = append(words, "asked: "+asked)
		}
	}
	words = append(words, "|")
	for _, owner := range rdb.ZRange(ctx, queueKey, 0, -1).Val() {
		words = append(words, short(owner))
	}
	words = append(words, "|")
	names := rdb.HGetAll(ctx, namesKey).Val()
	for _, owner := range slices.Sorted(maps.Keys(names)) {
		words = append(words, short(owner)+": "+names[owner])
	}
	for _, key := range []string{recordKey, namesKey} {
		if rdb.Get(ctx, key).Val() == "precious" {
			words = append(words, "broken")
		}
	}
	scripttest.Ends(t, rdb)
	return strings.Join(words, " ")
}

func short(owner string) string {
	return map[string]string{mine: "mine", others: "others", third: "third"}[owner]
}

type row = scripttest.Row

func TestEnterScript(t *testing.T) {
	ask := func(notAfter string, number, priority, preempts int) []any {
		return []any{notAfter, mine, 30_000, 604_800_000, 2_500, number, 0, 0, "", "PUBLISH", "c", "g", priority, "changes", preempts, "me"}
	}
	runTable(t, enterScript, allKeys, []row{
		{"absent", state{}, ask("now+1", 0, 0, 0), "[1 now ms now 0 0]", "mine=1 | | |", ""},
		{"another leads", state{holder: others, count: 1, record: others}, ask("now+1", 0, 0, 0),
			"[0 now ms now others 7]", "others=1 | others 7 who | mine | mine: 0 me", ""},
		{"another of the same priority leads", state{holder: others, count: 1, record: others}, ask("now+1", 0, 0, 1),
			"[0 now ms now others 7]", "others=1 | others 7 who | mine | mine: 0 me", ""},
		{"another of a lower priority leads", state{holder: others, count: 1, record: others}, ask("now+1", 0, 1, 0),
			"[0 now ms now-1 others 7]", "others=1 | others 7 who | mine | mine: 1 me", ""},
		{"another of a lower priority is preempted", state{holder: others, count: 1, record: others}, ask("now+1", 0, 1, 1),
			"[0 now ms now-1 others 7]", "others=1 | others 7 who asked: a candidate of higher priority waits: me | mine | mine: 1 me", ""},
		{"one that was asked before", state{holder: others, count: 1, record: others, asked: "before"}, ask("now+1", 0, 1, 1),
			"[0 now ms now-1 others 7]", "others=1 | others 7 who asked: before | mine | mine: 1 me", ""},
		{"the record of one that leads no more", state{holder: others, count: 1, record: third}, ask("now+1", 0, 1, 1),
			"[0 now ms now-1 others 7]", "others=1 | third 7 who | mine | mine: 1 me", ""},
		{"I am in the queue", state{holder: others, count: 1, record: others, queue: []string{mine}}, ask("now+1", 11, 0, 0),
			"[0 now ms 11 others 7]", "others=1 | others 7 who | mine | mine: 0 name of mine", ""},
		{"it was handed to me", state{holder: mine, count: 0}, ask("now+1", 11, 0, 0), "[1 now ms now 0 0]", "mine=1 | | |", "[1 now ms now 0 0]"},
		{"late", state{holder: others, count: 1, record: others}, ask("now-1", 0, 1, 1), "[-1 now]", "others=1 | others 7 who | |", ""},
	})
}

func TestReleaseScript(t *testing.T) {
	call := []any{"now-1", mine, "PUBLISH", "c", "g", 0, "", 604_800_000, "", 2_500, "changes"}
	runTable(t, releaseScript, allKeys, []row{
		{"absent", state{}, call, "[0 now]", "| | |", ""},
		{"mine", state{holder: mine, count: 1, record: mine}, call, "[1 now]", "| | |", "[0 now]"},
		{"mine, others wait", state{holder: mine, count: 1, record: mine, queue: []string{others, third}}, call,
			"[1 now 0 2]", "others=0 | | third | others: 0 name of others third: 0 name of third", "[0 now]"},
		{"a broken record", broken{state{holder: mine, count: 1}, recordKey}, call, "[1 now]", "| | | broken", "[0 now]"},
		{"broken names", broken{state{holder: mine, count: 1}, namesKey}, call, "[1 now]", "| | | broken", "[0 now]"},
		{"another's", state{holder: others, count: 1, record: others}, call, "[0 now]", "others=1 | others 7 who | |", ""},
		{"I wait", state{holder: others, count: 1, record: others, queue: []string{mine, third}}, call,
			"[0 now]", "others=1 | others 7 who | third | third: 0 name of third", ""},
	})
	runTable(t, releaseScript, allKeys[:1], []row{
		{"while the slot is on the move", state{holder: mine, count: 1, record: mine}, call, "[1 now]", "| mine 7 who | |", "[0 now]"},
	})
}

func TestTellScript(t *testing.T) {
	call := func(notAfter string) []any {
		return []any{notAfter, mine, "PUBLISH", "changes", 9, 0, 35_000, 3, "me", "here"}
	}
	runTable(t, tellScript, tellKeys, []row{
		{"mine", state{holder: mine, count: 1}, call("now+1"), "[1 now now ]", "mine=1 | mine 9 me | |", ""},
		{"handed to me", state{holder: mine, count: 0}, call("now+1"), "[1 now now ]", "mine=0 | mine 9 me | |", ""},
		{"told before", state{holder: mine, count: 1, record: mine}, call("now+1"), "[1 now 5 ]", "mine=1 | mine 7 who | |", ""},
		{"asked", state{holder: mine, count: 1, record: mine, asked: "by x"}, call("now+1"), "[1 now 5 by x]", "mine=1 | mine 7 who asked: by x | |", ""},
		{"the last leader was asked", state{holder: mine, count: 1, record: others, asked: "by x"}, call("now+1"), "[1 now now ]", "mine=1 | mine 9 me | |", ""},
		{"names of those that are gone", state{holder: mine, count: 1, queue: []string{others}, gone: []string{mine, third}}, call("now+1"), "[1 now now ]",
			"mine=1 | mine 9 me | others | others: 0 name of others", ""},
		{"another's", state{holder: others, count: 1, record: others}, call("now+1"), "[0 now]", "others=1 | others 7 who | |", ""},
		{"absent", state{record: mine}, call("now+1"), "[0 now]", "| mine 7 who | |", ""},
		{"late", state{holder: mine, count: 1}, call("now-1"), "[-1 now]", "mine=1 | | |", ""},
	})
}

func TestLookAndAskScripts(t *testing.T) {
	look := []any{"now-1"}
	runTable(t, lookScript, lookKeys, []row{
		{"absent", state{}, look, "[0 now]", "| | |", ""},
		{"mine", state{holder: mine, count: 1, record: mine, priority: 4}, look, "[1 now ms 7 5 4 who at]", "mine=1 | mine 7 who | |", ""},
		{"not told yet", state{holder: mine, count: 1}, look, "[0 now]", "mine=1 | | |", ""},
		{"the last leader's record", state{holder: mine, count: 1, record: others}, look, "[0 now]", "mine=1 | others 7 who | |", ""},
		{"only a record", state{record: others}, look, "[0 now]", "| others 7 who | |", ""},
	})
	ask := func(notAfter string, token int) []any { return []any{notAfter, token, "PUBLISH", "changes", "by me"} }
	runTable(t, askScript, lookKeys, []row{
		{"absent", state{}, ask("now+1", 7), "[0 now]", "| | |", ""},
		{"that term", state{holder: mine, count: 1, record: mine}, ask("now+1", 7), "[1 now]", "mine=1 | mine 7 who asked: by me | |", ""},
		{"asked before", state{holder: mine, count: 1, record: mine, asked: "by x"}, ask("now+1", 7), "[1 now]", "mine=1 | mine 7 who asked: by x | |", ""},
		{"a later term", state{holder: mine, count: 1, record: mine}, ask("now+1", 6), "[0 now]", "mine=1 | mine 7 who | |", ""},
		{"that term is over", state{holder: others, count: 1, record: mine}, ask("now+1", 7), "[0 now]", "others=1 | mine 7 who | |", ""},
		{"late", state{holder: mine, count: 1, record: mine}, ask("now-1", 7), "[-1 now]", "mine=1 | mine 7 who | |", ""},
	})
}

func TestCandidatesScript(t *testing.T) {
	keys := []string{queueKey, aliveKey, namesKey}
	runTable(t, candidatesScript, keys, []row{
		{"nobody", state{}, []any{"now-1", "-inf", 2}, "[1 now ]", "| | |", ""},
		{"some", state{queue: []string{others, mine}}, []any{"now-1", "-inf", 3}, "[1 now  others 0 name of others mine 0 name of mine]",
			"| | others mine | mine: 0 name of mine others: 0 name of others", ""},
		{"a page", state{queue: []string{others, mine}}, []any{"now-1", "-inf", 1}, "[1 now (11 others 0 name of others]",
			"| | others mine | mine: 0 name of mine others: 0 name of others", ""},
		{"one is dead", state{queue: []string{mine}, dead: []string{others}}, []any{"now-1", "(10", 3}, "[1 now  mine 0 name of mine]",
			"| | mine others | mine: 0 name of mine others: 0 name of others", ""},
	})
}

// runTable runs the script in each state, on an embedded server and on a real one.
func runTable(t *testing.T, script *conn.Script, keys []string, rows []row) {
	t.Helper()
	table := scripttest.Table{Source: script.Source(), Keys: keys, Word: word, Left: look}
	table.Run(t, rows)
	t.Run(script.Name()+" on a real server", func(t *testing.T) {
		rdb := redistest.Server(t).Client(t)
		for _, tc := range rows {
			t.Run(tc.What, func(t *testing.T) { table.Twice(t, rdb, tc) })
		}
	})
}

// word returns "now" for a time or a number made of it, "now-1" for that of a candidate whose priority is 1, "ms" for a
// time in ms, and a short owner.
func word(i int, v any) string {
	now, text := time.Now().UnixMicro(), fmt.Sprint(v)
	near := func(n int64) bool { return n-now > -time.Minute.Microseconds() && n-now < time.Minute.Microseconds() }
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case near(n):
		return "now"
	case near(n + step):
		return "now-1"
	case short(text) != "":
		return short(text)
	case err == nil && i == 2 && n > 1000:
		return "ms"
	}
	return text
}
