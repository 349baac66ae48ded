// These tests run each script on its own, and check what it answers and what it leaves. Each step
// runs twice, as if its reply were lost. The barrier may be absent, open, tripped, broken or foreign.
// A script may run late or without memory, or may fail midway.

package barrier

import (
	"context"
	"fmt"
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

func TestMain(m *testing.M) { redistest.Main(m) }

// asker plays the scripts. The keys are r and p. It knows the generations by the order in which they began: g1, g2.
type asker struct {
	scripttest.Player
	generations map[string]string
}

func newAsker(t testing.TB, rdb *redis.Client) *asker {
	rdb.FlushAll(t.Context())
	a := &asker{generations: map[string]string{}}
	a.Player = scripttest.Player{T: t, RDB: rdb, Parts: a.parts, Words: a.words, Left: a.state, Set: a.set}
	return a
}

type step scripttest.Step

// show gives a generation its name.
func (a *asker) show(number string) string {
	if len(number) < 15 {
		return number
	}
	if a.generations[number] == "" {
		a.generations[number] = "g" + strconv.Itoa(len(a.generations)+1)
	}
	return a.generations[number]
}

// number returns the number of a generation.
func (a *asker) number(name string) string {
	for number, known := range a.generations {
		if known == name {
			return number
		}
	}
	return "7"
}

const lease = 30_000

// words returns a reply without times to live.
func (a *asker) words(command string, reply []any) string {
	words := []string{fmt.Sprint(reply[0])}
	for i, v := range reply[2:] {
		text := fmt.Sprint(v)
		if i == 0 && (strings.HasPrefix(command, "enter") || strings.HasPrefix(command, "look")) && text != "-1" {
			continue // a time to live
		}
		words = append(words, a.show(text))
	}
	return strings.Join(words, " ")
}

// parts returns the script, the keys and the arguments of a command: "enter <owner> <parties>" (or "... g1", of a
// process that knows that g1 is over), "look g1 <owner>" (or of no party), "break g1 <owner>", "release <owner>",
// "renew <owner> <ms>" or "state".
func (a *asker) parts(command string) (*conn.Script, []string, []any) {
	w := append(strings.Fields(command), "", "")
	ended := "0"
	if w[0] == "enter" && len(w) == 6 {
		ended = a.number(w[3])
	}
	both := []string{"r", "p"}
	switch w[0] {
	case "enter":
		return enterScript, both, []any{w[1], lease, w[2], "PUBLISH", "c", ended}
	case "look":
		return lookScript, both, []any{a.number(w[1]), "PUBLISH", "c", w[2]}
	case "break":
		return breakScript, both, []any{a.number(w[1]), "PUBLISH", "c", w[2]}
	case "release":
		return releaseScript, both, []any{w[1], "PUBLISH", "c"}
	case "renew":
		return renewScript, []string{"p"}, []any{w[1], w[2]}
	default:
		return stateScript, []string{"r"}, nil
	}
}

// state returns how the newest generation stands, and the places that are not over.
func (a *asker) state() string {
	ctx := context.Background()
	scripttest.Ends(a.T, a.RDB, "r", "p")
	r := a.RDB.HMGet(ctx, "r", "state", "arrived", "parties").Val()
	if len(r) < 3 || r[0] == nil {
		r = []any{"-", 0, 0}
	}
	now := a.RDB.Time(ctx).Val().UnixMilli()
	members := a.RDB.ZRangeArgs(ctx, redis.ZRangeArgs{Key: "p", Start: "(" + strconv.FormatInt(now, 10), Stop: "+inf", ByScore: true}).Val()
	slices.Sort(members)
	return strings.TrimSpace(fmt.Sprintf("%v %v/%v %s", r[0], r[1], r[2], strings.Join(members, " ")))
}

// set makes a place over by "lapse <owner>".
func (a *asker) set(words []string) bool {
	if words[0] != "lapse" {
		return false
	}
	a.RDB.ZAddXX(context.Background(), "p", redis.Z{Score: 1, Member: words[1]})
	return true
}

func TestScripts(t *testing.T) { scripttest.OnServers(t, testScripts) }

func testScripts(t *testing.T, rdb *redis.Client) {
	for name, steps := range map[string][]step{
		"nothing there": {
			{"look g1", "3", "3", "- 0/0"},
			{"break g1", "3", "3", "- 0/0"},
			{"renew a 30000", "0", "0", "- 0/0"},
			{"state", "0 0", "0 0", "- 0/0"},
		},
		"trips": {
			{"enter a 3", "1 g1 2", "1 g1 2", "open 1/3 a"},
			{"enter b 3", "1 g1 1", "1 g1 1", "open 2/3 a b"},
			{"state", "1 g1 3 2", "1 g1 3 2", "open 2/3 a b"},
			{"look g1", "0", "0", "open 2/3 a b"},
			{"renew a 30000", "1 30000", "1 30000", "open 2/3 a b"},
			{"enter c 3", "0 g1 0 1", "0 g1 0 1", "tripped 3/3 a b left:c"},
			{"look g1", "1", "1", "tripped 3/3 a b left:c"},
			{"break g1", "1", "1", "tripped 3/3 a b left:c"},
			{"enter a 3", "0 g1 2 1", "0 g1 2 1", "tripped 3/3 a b left:c"},
			{"renew a 30000", "1 30000", "1 30000", "tripped 3/3 a b left:c"},
			{"release a", "1", "1", "tripped 3/3 b left:a left:c"},
			{"enter a 3", "0 0 0 5", "0 0 0 5", "tripped 3/3 b left:a left:c"}, // it comes late
			{"renew a 30000", "0", "0", "tripped 3/3 b left:a left:c"},
			{"state", "0 g1", "0 g1", "tripped 3/3 b left:a left:c"},
			{"enter d 2", "1 g2 1", "1 g2 1", "open 1/2 b d left:a left:c"},
			{"enter b 3", "0 g1 1 1", "0 g1 1 1", "open 1/2 b d left:a left:c"}, // its reply was lost
			{"release b", "1", "1", "open 1/2 d left:a left:b left:c"},
			{"look g1", "1", "1", "open 1/2 d left:a left:b left:c"},
			{"look g2", "0", "0", "open 1/2 d left:a left:b left:c"},
		},
		"a party leaves": {
			{"enter a 3", "1 g1 2", "1 g1 2", "open 1/3 a"},
			{"enter b 3", "1 g1 1", "1 g1 1", "open 2/3 a b"},
			{"release a", "1", "1", "broken 2/3 b left:a"},
			{"look g1", "2", "2", "broken 2/3 b left:a"},
			{"enter b 3", "0 g1 1 2", "0 g1 1 2", "broken 2/3 b left:a"},
			{"enter c 1", "0 g2 0 1", "0 g2 0 1", "tripped 1/1 b left:a left:c"},
			{"look g1", "2", "2", "tripped 1/1 b left:a left:c"},
			{"look g2", "1", "1", "tripped 1/1 b left:a left:c"},
		},
		"a stranger leaves, and comes late": {
			{"enter a 2", "1 g1 1", "1 g1 1", "open 1/2 a"},
			{"release x", "0", "1", "open 1/2 a left:x"},
			{"enter x 2", "0 0 0 5", "0 0 0 5", "open 1/2 a left:x"},
		},
		"a stranger leaves nothing": {
			{"release x", "0", "1", "- 0/0 left:x"},
			{"enter x 2", "0 0 0 5", "0 0 0 5", "- 0/0 left:x"},
			{"enter a 1", "0 g1 0 1", "0 g1 0 1", "tripped 1/1 left:a left:x"},
		},
		"broken by name": {
			{"enter a 2", "1 g1 1", "1 g1 1", "open 1/2 a"},
			{"break g1", "2", "2", "broken 1/2 a"},
			{"enter b 2", "1 g2 1", "1 g2 1", "open 1/2 a b"},
			{"break g1", "2", "2", "open 1/2 a b"},
			{"release a", "1", "1", "open 1/2 b left:a"},
		},
		"a place is over: a look finds it": {
			{"enter a 3", "1 g1 2", "1 g1 2", "open 1/3 a"},
			{"enter b 3", "1 g1 1", "1 g1 1", "open 2/3 a b"},
			{"lapse a", "", "", ""},
			{"renew a 30000", "0", "0", "open 2/3 b"},
			{"look g1", "2", "2", "broken 2/3 b"},
		},
		"a place is over: a party finds it": {
			{"enter a 2", "1 g1 1", "1 g1 1", "open 1/2 a"},
			{"lapse a", "", "", ""},
			{"enter b 2", "1 g2 1", "1 g2 1", "open 1/2 b"},
			{"look g1", "2", "2", "open 1/2 b"},
		},
		"the place of an earlier generation is over": {
			{"enter a 2", "1 g1 1", "1 g1 1", "open 1/2 a"},
			{"enter b 2", "0 g1 0 1", "0 g1 0 1", "tripped 2/2 a left:b"},
			{"enter c 2", "1 g2 1", "1 g2 1", "open 1/2 a c left:b"},
			{"lapse a", "", "", ""},
			{"look g2", "0", "0", "open 1/2 c left:b"},
			{"look g1", "1", "1", "open 1/2 c left:b"},
		},
		"a generation of the past": {
			{"enter a 3", "1 g1 2", "1 g1 2", "open 1/3 a"},
			{"enter b 3", "1 g1 1", "1 g1 1", "open 2/3 a b"},
			{"enter c 3 g1", "1 g2 2", "1 g2 2", "open 1/3 a b c"},
			{"look g1 a", "2", "2", "open 1/3 a b c"},
			{"enter d 3 g1", "1 g2 1", "1 g2 1", "open 2/3 a b c d"},
			{"enter e 2 g2", "1 g3 1", "1 g3 1", "open 1/2 a b c d e"},
		},
		"late": {
			{"enter a 2", "1 g1 1", "1 g1 1", "open 1/2 a"},
			{"late enter b 2", "-1", "-1", "open 1/2 a"},
			{"late renew a 60000", "-1", "-1", "open 1/2 a"},
		},
		"memory is short: nobody arrives, and those that wait are renewed, and may leave": {
			{"enter a 3", "1 g1 2", "1 g1 2", "open 1/3 a"},
			{"enter b 3", "1 g1 1", "1 g1 1", "open 2/3 a b"},
			{"memory is short", "", "", ""},
			{"enter c 3", "OOM", "OOM", "open 2/3 a b"},
			{"renew a 60000", "1 60000", "1 60000", "open 2/3 a b"},
			{"look g1", "0", "0", "open 2/3 a b"},
			{"release a", "1", "1", "broken 2/3 b left:a"},
			{"look g1", "2", "2", "broken 2/3 b left:a"},
			{"enter d 3", "OOM", "OOM", "broken 2/3 b left:a"},
		},
		"other parties": {
			{"enter a 3", "1 g1 2", "1 g1 2", "open 1/3 a"},
			{"enter b 2", "0 3 0 4", "0 3 0 4", "open 1/3 a"},
			{"enter b 4", "0 3 0 4", "0 3 0 4", "open 1/3 a"},
			{"enter b 3", "1 g1 1", "1 g1 1", "open 2/3 a b"},
		},
	} {
		t.Run(name, func(t *testing.T) { scripttest.Play(&newAsker(t, rdb).Player, steps) })
	}
}

// A key of another type is left as it is.
func TestScriptsThatChangeNothing(t *testing.T) {
	scripttest.OnMini(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client) {
		a := newAsker(t, rdb)
		a.Foreign(mini, "r", "enter a 2", "look g1", "break g1", "release a", "state")
		a.Foreign(mini, "p", "enter a 2", "look g1", "break g1", "release a", "renew a 1")
	})
}

// A hundred generations that broke are remembered, and a hundred that tripped.
func TestGenerationsAreForgottenInOrder(t *testing.T) {
	a := newAsker(t, redistest.Mini(t).Client())
	for i := range 103 {
		a.Do(fmt.Sprintf("enter trips%d 1", i), fmt.Sprintf("enter breaks%d 2", i), fmt.Sprintf("release breaks%d", i))
	}
	for i := range 206 {
		want := []string{"1", "2"}[i%2]
		if i < 6 {
			want = "3"
		}
		redistest.Equal(t, a.Ask(time.Minute, fmt.Sprintf("look g%d", i+1)), want, "%q, want %q (generation %d)", want, i+1)
	}
}

// A party that has its place learns that its generation tripped, however many have tripped since. A
// generation that never was here, though its number lies among theirs, has not.
func TestAGenerationTrippedOnlyIfSomethingSaysSo(t *testing.T) {
	a := newAsker(t, redistest.Mini(t).Client())
	a.Do("enter a 2", "enter b 2")
	first, _ := strconv.ParseInt(a.number("g1"), 10, 64)
	for range 2 { // microseconds, by the server's clock
		time.Sleep(time.Millisecond)
		a.Ask(time.Minute, fmt.Sprintf("enter c%d 1", len(a.generations)))
	}
	a.generations[strconv.FormatInt(first+1, 10)] = "never"
	for _, c := range []string{"look never", "look never a", "look never x", "break never", "break never a"} {
		redistest.Equal(t, a.Ask(time.Minute, c), "3", "%q (%s)", c)
	}
	for i := range 100 {
		a.Ask(time.Minute, fmt.Sprintf("enter d%d 1", i))
	}
	for command, want := range map[string]string{
		"look g1 a": "1", "look g1 b": "1", "break g1 a": "1", "enter a 2": "0 g1 1 1",
		"look g1": "3", "look g1 x": "3", "look g1 c1": "3", "look g3": "1",
	} {
		redistest.Equal(t, a.Ask(time.Minute, command), want, "%q, want %q (%s)", want, command)
	}
}

// The clock of the new master may be behind: a generation is greater than any of which its first party
// knows that it is over.
func TestGenerationsGrowWhateverTheClock(t *testing.T) {
	a := newAsker(t, redistest.Mini(t).Client())
	a.generations["8000000000000000"] = "ahead"
	for _, owner := range []string{"a", "b"} {
		a.Ask(time.Minute, "enter "+owner+" 1 ahead")
	}
	for _, number := range []string{"8000000000000001", "8000000000000002"} {
		if a.generations[number] == "" {
			t.Errorf("%s is not among %v", number, a.generations)
		}
	}
}

// Whichever command of a script fails, the same request, sent once more, ends as if none had. Only
// that a party has left may be forgotten sooner.
func TestFailingMidway(t *testing.T) {
	mini := redistest.Mini(t)
	rdb := mini.Client()
	fresh := func() *scripttest.Player {
		a := newAsker(t, rdb)
		a.Left = func() string { return strings.TrimSpace(strings.ReplaceAll(a.state(), "left:a", "")) }
		return &a.Player
	}
	scripttest.Midway(mini, fresh, [][]string{
		{"enter a 2"},
		{"enter a 2", "enter b 2"},
		{"enter a 2", "release a"},
		{"enter a 2", "break g1"},
		{"enter a 2", "lapse a", "look g1"},
		{"enter a 2", "lapse a", "enter b 2"},
		{"enter a 2", "enter b 2 g1"},
	})
}

// A party that has died is found behind any number of members that are over too, by whoever comes, looks,
// breaks or leaves.
func TestADeadPartyBehindManyThatHaveLeft(t *testing.T) {
	rdb := redistest.Mini(t).Client()
	for _, members := range []int{99, 100, 101, 1099, 1100, 1101, 2500} {
		for command, want := range map[string]string{"look g1 a": "2", "enter b 2": "1 g2 1", "release x": "0"} {
			a := newAsker(t, rdb)
			a.Ask(time.Minute, "enter a 2")
			all := []redis.Z{{Score: 2, Member: "a"}}
			for i := range members {
				all = append(all, redis.Z{Score: 1, Member: fmt.Sprintf("left:%d", i)})
			}
			rdb.ZAdd(t.Context(), "p", all...)
			redistest.Equal(t, a.Ask(time.Minute, command), want, "%q, want %q (behind %d, %s)", want, members, command)
			redistest.Equal(t, a.Ask(time.Minute, "look g1"), "2", "%q (behind %d, after %s)", members, command)
		}
	}
}
