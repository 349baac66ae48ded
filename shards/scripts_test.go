// These tests run each script on its own, and check what it answers and what it leaves. Each step runs
// twice, as if its reply were lost. A script may run late or without memory, or may fail midway.

package shards

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/scripttest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// asker plays the scripts. The keys are m, d and t.
type asker struct {
	scripttest.Player
	table map[string]string // when state looked last
}

func newAsker(t testing.TB, rdb *redis.Client) *asker {
	rdb.FlushAll(t.Context())
	a := &asker{}
	a.Player = scripttest.Player{T: t, RDB: rdb, Parts: a.parts, Words: words, Left: a.state, Set: a.set}
	return a
}

type step scripttest.Step

const length = 30_000

// words returns a reply without tokens and revs, times to live in seconds. What a balance says is
// "<members> has <shards> gives <shards>".
func words(command string, reply []any) string {
	number := func(i int) int { n, _ := reply[i].(int64); return int(n) }
	words := []string{fmt.Sprint(reply[0])}
	switch name := strings.Fields(command)[0]; {
	case len(reply) < 3:
	case name == "join" && number(0) == 1:
		words = append(words, strconv.Itoa((number(2)+999)/1000)+"s")
	case name == "balance":
		n := number(5)
		words = append(words, strconv.Itoa(number(4)), "has")
		for i := range n {
			words = append(words, fmt.Sprint(number(6+2*i)))
		}
		slices.Sort(words[3:])
		words = append(words, "gives")
		for _, v := range reply[6+2*max(n, 0):] {
			words = append(words, fmt.Sprint(v))
		}
	case name == "look":
		l := number(6)
		words = append(words, fmt.Sprint(number(3)))
		for i := 7 + 2*l; i+2 < len(reply); i += 3 {
			identity, _ := saidIn(fmt.Sprint(reply[7+2*(number(i+2)-1)]))
			words = append(words, fmt.Sprintf("%d=%s", number(i), identity))
		}
		slices.Sort(words[2:])
	case name == "renew":
		words = append(words, strconv.Itoa((number(2)+999)/1000)+"s")
	default:
		for _, v := range reply[2:] {
			words = append(words, fmt.Sprint(v))
		}
	}
	return strings.Join(words, " ")
}

// parts returns the script, the keys and the arguments of a command. Members are written a for "a:1".
//
//	join <member> [of=4] [weight=1], renew <member> <ms>, leave <member>, look <shard>
//	balance <member> [moves=0] [<shard> it gives up, with the token that it has]
func (a *asker) parts(command string) (*conn.Script, []string, []any) {
	w := strings.Fields(command)
	option := func(name string, value int) int { return scripttest.Option(w, name, value) }
	member := w[1] + ":1"
	switch w[0] {
	case "join":
		c := config{identity: w[1], value: "at " + w[1], weight: option("weight", 1)}
		return joinScript, []string{"m", "d", "t"}, []any{member, length, option("of", 4), 3_600_000, c.said(), 4 * length, "PUBLISH", "c"}
	case "renew":
		return renewScript, []string{"m"}, []any{member, w[2]}
	case "leave":
		return leaveScript, []string{"m", "d"}, []any{member, "PUBLISH", "c"}
	case "balance":
		args := []any{member, 0, 0, option("moves", 0), 3_600_000, 4 * length, "PUBLISH", "c"}
		for _, shard := range w[2:] {
			if _, err := strconv.Atoi(shard); err == nil {
				token, _, _ := strings.Cut(a.RDB.HGet(context.Background(), "d", shard).Val(), " ")
				args = append(args, shard, token)
			}
		}
		return balanceScript, []string{"m", "d", "t"}, args
	default:
		return lookScript, []string{"m", "d"}, []any{w[1], 0, 0}
	}
}

// state returns the members, ! if the lease is over, and what the table says that they have. Rev must have changed if a
// shard has come free since the last look.
func (a *asker) state() string {
	ctx := context.Background()
	scripttest.Ends(a.T, a.RDB, "m", "d", "t")
	now := a.RDB.Time(ctx).Val().UnixMilli()
	var words []string
	table := a.RDB.HGetAll(ctx, "d").Val()
	if table["0"] != a.table["0"] && strings.HasSuffix(table["0"], " ") && table["rev"] == a.table["rev"] {
		a.T.Errorf("nobody sees that a shard is free: %q after %q", table["0"], a.table["0"])
	}
	a.table = table
	for _, z := range a.RDB.ZRangeWithScores(ctx, "m", 0, -1).Val() {
		member := z.Member.(string)
		word := strings.TrimSuffix(member, ":1")
		if int64(z.Score) <= now {
			word += "!"
		}
		var has []string
		for shard, value := range table {
			if _, owner, _ := strings.Cut(value, " "); owner == member && !strings.Contains(shard, ":") {
				has = append(has, shard)
			}
		}
		slices.Sort(has)
		words = append(words, word+"="+strings.Join(has, ","))
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// set changes the state: "dead a" ends the lease of a.
func (a *asker) set(w []string) bool {
	if w[0] != "dead" {
		return false
	}
	a.RDB.ZAddXX(context.Background(), "m", redis.Z{Score: 1, Member: w[1] + ":1"})
	return true
}

func TestScripts(t *testing.T) { scripttest.OnServers(t, testScripts) }

func testScripts(t *testing.T, rdb *redis.Client) {
	for name, steps := range map[string][]step{
		"nothing there": {
			{"renew a 30000", "0", "0", ""},
			{"leave a", "0", "0", ""},
			{"balance a", "0", "0", ""},
			{"look -1", "1 0", "1 0", ""},
		},
		"one comes, and leaves": {
			{"join a", "1 30s", "1 30s", "a="},
			{"look -1", "1 1", "1 1", "a="},
			{"balance a", "1 1 has 0 1 2 3 gives", "1 1 has 0 1 2 3 gives", "a=0,1,2,3"},
			{"renew a 60000", "1 60s", "1 60s", "a=0,1,2,3"},
			{"renew a 0", "1 60s", "1 60s", "a=0,1,2,3"},
			{"look -1", "1 1 0=a 1=a 2=a 3=a", "1 1 0=a 1=a 2=a 3=a", "a=0,1,2,3"},
			{"look 2", "1 1 2=a", "1 1 2=a", "a=0,1,2,3"},
			{"leave a", "1", "0", ""},
			{"look 2", "1 0", "1 0", ""},
		},
		"what one has too many of it is asked for": {
			{"join a", "1 30s", "1 30s", "a="},
			{"balance a", "1 1 has 0 1 2 3 gives", "1 1 has 0 1 2 3 gives", "a=0,1,2,3"},
			{"join b", "1 30s", "1 30s", "a=0,1,2,3 b="},
			{"balance b", "1 2 has gives", "1 2 has gives", "a=0,1,2,3 b="},
			{"balance a", "1 2 has 0 1 2 3 gives 3 2", "1 2 has 0 1 2 3 gives 3 2", "a=0,1,2,3 b="},
			{"balance a moves=1", "1 2 has 0 1 2 3 gives 3", "1 2 has 0 1 2 3 gives 3", "a=0,1,2,3 b="},
			{"balance a 1", "1 2 has 0 2 3 gives 3", "1 2 has 0 2 3 gives 3", "a=0,2,3 b="},
			{"balance a moves=1", "1 2 has 0 2 3 gives", "1 2 has 0 2 3 gives", "a=0,2,3 b="},
			{"balance b", "1 2 has 1 gives", "1 2 has 1 gives", "a=0,2,3 b=1"},
			{"balance a 1", "1 2 has 0 2 3 gives 3", "1 2 has 0 2 3 gives 3", "a=0,2,3 b=1"}, // it is another's
			{"balance a 0", "1 2 has 2 3 gives", "1 2 has 2 3 gives", "a=2,3 b=1"},
			{"balance a", "1 2 has 2 3 gives", "1 2 has 2 3 gives", "a=2,3 b=1"}, // it does not take what is another's share
			{"balance b", "1 2 has 0 1 gives", "1 2 has 0 1 gives", "a=2,3 b=0,1"},
		},
		"the newest first": {
			{"join a of=6", "1 30s", "1 30s", "a="},
			{"join b of=6", "1 30s", "1 30s", "a= b="},
			{"balance b", "1 2 has 0 1 2 gives", "1 2 has 0 1 2 gives", "a= b=0,1,2"},
			{"balance a", "1 2 has 3 4 5 gives", "1 2 has 3 4 5 gives", "a=3,4,5 b=0,1,2"},
			{"leave a", "1", "0", "b=0,1,2"},
			{"balance b", "1 1 has 0 1 2 3 4 5 gives", "1 1 has 0 1 2 3 4 5 gives", "b=0,1,2,3,4,5"},
			{"join c of=6", "1 30s", "1 30s", "b=0,1,2,3,4,5 c="},
			{"balance b", "1 2 has 0 1 2 3 4 5 gives 3 4 5", "1 2 has 0 1 2 3 4 5 gives 3 4 5", "b=0,1,2,3,4,5 c="},
		},
		"what is free is for the youngest first": {
			{"join a", "1 30s", "1 30s", "a="},
			{"join b", "1 30s", "1 30s", "a= b="},
			{"balance a", "1 2 has 2 3 gives", "1 2 has 2 3 gives", "a=2,3 b="},
			{"balance b", "1 2 has 0 1 gives", "1 2 has 0 1 gives", "a=2,3 b=0,1"},
		},
		"one dies": {
			{"join a", "1 30s", "1 30s", "a="},
			{"join b", "1 30s", "1 30s", "a= b="},
			{"balance b", "1 2 has 0 1 gives", "1 2 has 0 1 gives", "a= b=0,1"},
			{"balance a", "1 2 has 2 3 gives", "1 2 has 2 3 gives", "a=2,3 b=0,1"},
			{"dead a", "", "", ""},
			{"renew a 30000", "0", "0", "a!=2,3 b=0,1"},
			{"look -1", "1 1 0=b 1=b", "1 1 0=b 1=b", "a!=2,3 b=0,1"},
			{"balance a", "0", "0", "a!=2,3 b=0,1"},
			{"balance b", "1 1 has 0 1 2 3 gives", "1 1 has 0 1 2 3 gives", "b=0,1,2,3"},
			{"leave a", "0", "0", "b=0,1,2,3"},
		},
		"weights": {
			{"join a of=9 weight=2", "1 30s", "1 30s", "a="},
			{"join b of=9", "1 30s", "1 30s", "a= b="},
			{"balance b", "1 2 has 0 1 2 gives", "1 2 has 0 1 2 gives", "a= b=0,1,2"},
			{"balance a", "1 2 has 3 4 5 6 7 8 gives", "1 2 has 3 4 5 6 7 8 gives", "a=3,4,5,6,7,8 b=0,1,2"},
		},
		"more members than shards": {
			{"join a of=1", "1 30s", "1 30s", "a="},
			{"balance a", "1 1 has 0 gives", "1 1 has 0 gives", "a=0"},
			{"join b of=1", "1 30s", "1 30s", "a=0 b="},
			{"balance b", "1 2 has gives", "1 2 has gives", "a=0 b="},
			{"balance a", "1 2 has 0 gives", "1 2 has 0 gives", "a=0 b="},
		},
		"late": {
			{"join a", "1 30s", "1 30s", "a="},
			{"late join b", "-1", "-1", "a="},
			{"late balance a", "-1", "-1", "a="},
			{"late renew a 60000", "-1", "-1", "a="},
		},
		"memory is short: nobody joins, and members keep their shards, and may give them up or leave": {
			{"join a", "1 30s", "1 30s", "a="},
			{"balance a", "1 1 has 0 1 2 3 gives", "1 1 has 0 1 2 3 gives", "a=0,1,2,3"},
			{"join b", "1 30s", "1 30s", "a=0,1,2,3 b="},
			{"memory is short", "", "", ""},
			{"join c", "OOM", "OOM", "a=0,1,2,3 b="},
			{"renew a 60000", "1 60s", "1 60s", "a=0,1,2,3 b="},
			{"balance a 0", "1 2 has 1 2 3 gives 3", "1 2 has 1 2 3 gives 3", "a=1,2,3 b="},
			{"leave a", "1", "0", "b="},
		},
		"another size": {
			{"join a", "1 30s", "1 30s", "a="},
			{"join b of=5", "0 0 4", "0 0 4", "a="},
			{"dead a", "", "", ""},
			{"join b of=5", "1 30s", "1 30s", "a!= b="},
			{"balance b", "1 1 has 0 1 2 3 4 gives", "1 1 has 0 1 2 3 4 gives", "b=0,1,2,3,4"},
		},
	} {
		t.Run(name, func(t *testing.T) { scripttest.Play(&newAsker(t, rdb).Player, steps) })
	}
}

// A key of another type is left as it is.
func TestScriptsThatChangeNothing(t *testing.T) {
	scripttest.OnMini(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client) {
		newAsker(t, rdb).Foreign(mini, "m", "renew a 1", "leave a", "balance a", "look -1")
	})
}

// Whichever command of a script fails, nothing is left without an expiry, a shard that was given up is announced by
// rev, and the same request, sent once more, ends as if none had failed.
func TestFailingMidway(t *testing.T) {
	mini := redistest.Mini(t)
	rdb := mini.Client()
	scripttest.Midway(mini, func() *scripttest.Player { return &newAsker(t, rdb).Player }, [][]string{
		{"join a"},
		{"join a", "join b"},
		{"join a", "dead a", "join b of=5"},
		{"join a", "renew a 60000"},
		{"join a", "balance a"},
		{"join a", "balance a", "join b", "balance a 0 1"},
		{"join a", "balance a", "join b", "dead a", "balance b"},
		{"join a", "balance a", "join b", "leave a"},
		{"join a", "balance a", "leave a"},
	})
}
