// These tests run each script on its own, and check what it answers and what it leaves. Each step runs
// twice, as if its reply were lost. A script may run late or without memory, or may fail midway.

package slots

import (
	"context"
	"fmt"
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

// asker plays the scripts. The keys are n, t, w and a.
type asker struct {
	scripttest.Player
	token int64 // the last one
}

func newAsker(t testing.TB, rdb *redis.Client) *asker {
	rdb.FlushAll(t.Context())
	a := &asker{}
	a.Player = scripttest.Player{T: t, RDB: rdb, Parts: parts, Words: a.words, Left: a.state, Set: a.set}
	return a
}

type step scripttest.Step

const length = 30_000

// words returns a reply without the token, times to live in seconds.
func (a *asker) words(command string, reply []any) string {
	a.T.Helper()
	words := []string{fmt.Sprint(reply[0])}
	for i, v := range reply[2:] {
		n, _ := v.(int64)
		switch acquires := strings.HasPrefix(command, "acquire"); {
		case i == 0 && (acquires || strings.HasPrefix(command, "renew")):
			words = append(words, strconv.FormatInt((n+999)/1000, 10)+"s")
		case i == 1 && acquires && reply[0] == int64(1):
			if n <= a.token {
				a.T.Errorf("%s: the token %d is not more than %d", command, n, a.token)
			}
			a.token = n
		default:
			words = append(words, fmt.Sprint(v))
		}
	}
	return strings.Join(words, " ")
}

// parts returns the script, the keys and the arguments of a command:
//
//	acquire <owner> [of=3] [prefer=-1] [quarantine=0] [waited=-1] [marks=0]
//	renew <owner> <ms>, release <owner>, lose <owner>, free <number> <owner>, look <number>
func parts(command string) (*conn.Script, []string, []any) {
	w := strings.Fields(command)
	option := func(name string, value int) int { return scripttest.Option(w, name, value) }
	switch w[0] {
	case "acquire":
		return acquireScript, []string{"n", "t", "w", "a"}, []any{w[1], length, option("of", 3), option("prefer", -1),
			option("quarantine", 0), 3_600_000, option("waited", -1), option("marks", 0)}
	case "renew":
		return renewScript, []string{"n"}, []any{w[1], w[2]}
	case "release":
		return releaseScript, []string{"n", "w", "a"}, []any{w[1], "PUBLISH", "c", 0}
	case "lose":
		return releaseScript, []string{"n", "w", "a"}, []any{w[1], "PUBLISH", "c", 1}
	case "free":
		return freeScript, []string{"n"}, []any{w[1], w[2], "PUBLISH", "c"}
	default:
		return lookScript, []string{"n"}, []any{w[1]}
	}
}

// state returns who has which number; ! if the lease is over; and who waits.
func (a *asker) state() string {
	ctx := context.Background()
	scripttest.Ends(a.T, a.RDB, "n", "t", "w", "a")
	now := a.RDB.Time(ctx).Val().UnixMilli()
	var words []string
	owners, numbers := 0, 0
	for _, z := range a.RDB.ZRangeWithScores(ctx, "n", 0, -1).Val() {
		member := z.Member.(string)
		switch {
		case z.Score < 0:
			owners++
			whole := int64(z.Score) + 1<<53
			number, quarantine := whole>>37, whole&(1<<37-1)
			back := int64(a.RDB.ZScore(ctx, "n", strconv.FormatInt(number, 10)).Val())
			over := ""
			if back-quarantine <= now {
				over = "!"
			}
			words = append(words, fmt.Sprintf("%d=%s%s", number, member, over))
		case member != "size":
			numbers++
		}
	}
	if owners != numbers {
		a.T.Errorf("%d numbers, %d owners", numbers, owners)
	}
	if size := a.RDB.ZScore(ctx, "n", "size").Val(); owners == 0 && size != 0 {
		words = append(words, "size")
	}
	waiting := a.RDB.ZRange(ctx, "w", 0, -1).Val()
	if n := a.RDB.ZCard(ctx, "a").Val(); n != int64(len(waiting)) {
		a.T.Errorf("%d wait, and %d are alive", len(waiting), n)
	}
	for _, owner := range waiting {
		words = append(words, "~"+owner)
	}
	return strings.Join(words, " ")
}

// set changes the state: "lapse 0" has the number come back by now; "over 0 5000" ends its lease and leaves
// 5 s of its quarantine; "dead a" ends the mark of a.
func (a *asker) set(w []string) bool {
	ctx := context.Background()
	now := a.RDB.Time(ctx).Val().UnixMilli()
	switch w[0] {
	case "lapse":
		a.RDB.ZAddXX(ctx, "n", redis.Z{Score: 1, Member: w[1]})
	case "over":
		left, _ := strconv.ParseInt(w[2], 10, 64)
		a.RDB.ZAddXX(ctx, "n", redis.Z{Score: float64(now + left), Member: w[1]})
	case "dead":
		a.RDB.ZAddXX(ctx, "a", redis.Z{Score: 1, Member: w[1]})
	default:
		return false
	}
	return true
}

func TestScripts(t *testing.T) { scripttest.OnServers(t, testScripts) }

func testScripts(t *testing.T, rdb *redis.Client) {
	for name, steps := range map[string][]step{
		"nothing there": {
			{"renew a 30000", "0", "0", ""},
			{"release a", "0", "0", ""},
			{"lose a", "0", "0", ""},
			{"free 0 a", "0", "0", ""},
			{"look 0", "1 0", "1 0", ""},
		},
		"the lowest that is free": {
			{"acquire a", "1 30s 0", "1 30s 0", "0=a"},
			{"acquire b", "1 30s 1", "1 30s 1", "0=a 1=b"},
			{"acquire c", "1 30s 2", "1 30s 2", "0=a 1=b 2=c"},
			{"acquire d", "0 30s 0", "0 30s 0", "0=a 1=b 2=c"},
			{"look 1", "1 3 b", "1 3 b", "0=a 1=b 2=c"},
			{"release b", "1", "0", "0=a 2=c"},
			{"look 1", "1 2", "1 2", "0=a 2=c"},
			{"release a", "1", "0", "2=c"},
			{"acquire d", "1 30s 0", "1 30s 0", "0=d 2=c"},
			{"acquire e", "1 30s 1", "1 30s 1", "0=d 1=e 2=c"},
			{"release c", "1", "0", "0=d 1=e"},
			{"release d", "1", "0", "1=e"},
			{"release e", "1", "0", ""},
		},
		"the preferred one": {
			{"acquire a of=65536 prefer=65535", "1 30s 65535", "1 30s 65535", "65535=a"},
			{"acquire b of=65536 prefer=65535", "1 30s 0", "1 30s 0", "0=b 65535=a"},
			{"acquire c of=65536 prefer=7", "1 30s 7", "1 30s 7", "0=b 7=c 65535=a"},
			{"acquire d of=65536 prefer=0", "1 30s 1", "1 30s 1", "0=b 1=d 7=c 65535=a"},
			{"lapse 7", "", "", ""},
			{"acquire e of=65536 prefer=7", "1 30s 7", "1 30s 7", "0=b 1=d 7=e 65535=a"},
		},
		"a lease that is over": {
			{"acquire a", "1 30s 0", "1 30s 0", "0=a"},
			{"acquire b", "1 30s 1", "1 30s 1", "0=a 1=b"},
			{"lapse 0", "", "", ""},
			{"renew a 30000", "0", "0", "0=a! 1=b"},
			{"look 0", "1 1", "1 1", "0=a! 1=b"},
			{"acquire c", "1 30s 0", "1 30s 0", "0=c 1=b"},
			{"release a", "0", "0", "0=c 1=b"},
			{"lapse 0", "", "", ""},
			{"acquire c", "1 30s 0", "1 30s 0", "0=c 1=b"}, // its reply was late, and nobody has taken it
			{"lapse 1", "", "", ""},
			{"release b", "0", "0", "0=c"},
		},
		"quarantine": {
			{"acquire a of=1 quarantine=60000", "1 30s 0", "1 30s 0", "0=a"},
			{"renew a 40000", "1 40s", "1 40s", "0=a"},
			{"renew a 0", "1 40s", "1 40s", "0=a"},
			{"over 0 5000", "", "", ""},
			{"renew a 30000", "0", "0", "0=a!"},
			{"release a", "0", "0", "0=a!"},
			{"lose a", "0", "0", "0=a!"},
			{"acquire b of=1", "0 5s 0", "0 5s 0", "0=a!"},
			{"look 0", "1 1 a", "1 1 a", "0=a!"},
			{"lapse 0", "", "", ""},
			{"acquire b of=1", "1 30s 0", "1 30s 0", "0=b"},
		},
		"lost, and reported": {
			{"acquire a of=1 quarantine=60000", "1 30s 0", "1 30s 0", "0=a"},
			{"lose a", "1", "0", "0=a!"},
			{"acquire b of=1", "0 60s 0", "0 60s 0", "0=a!"},
			{"free 0 b", "0", "0", "0=a!"},
			{"free 0 a", "1", "0", ""},
			{"acquire b of=1", "1 30s 0", "1 30s 0", "0=b"},
			{"lose b", "1", "0", ""},
		},
		"released: no quarantine": {
			{"acquire a of=1 quarantine=60000", "1 30s 0", "1 30s 0", "0=a"},
			{"release a", "1", "0", ""},
		},
		"another size": {
			{"acquire a", "1 30s 0", "1 30s 0", "0=a"},
			{"acquire b of=4", "0 0s 3", "0 0s 3", "0=a"},
			{"acquire b of=2 waited=0 marks=3000", "0 0s 3", "0 0s 3", "0=a"},
			{"release a", "1", "0", ""},
			{"acquire b of=4", "1 30s 0", "1 30s 0", "0=b"},
		},
		"another size, of leases that are over": {
			{"acquire a", "1 30s 0", "1 30s 0", "0=a"},
			{"acquire b", "1 30s 1", "1 30s 1", "0=a 1=b"},
			{"lapse 0", "", "", ""},
			{"acquire c of=4", "0 0s 3", "0 0s 3", "1=b"},
			{"lapse 1", "", "", ""},
			{"acquire c of=4", "1 30s 0", "1 30s 0", "0=c"},
			{"release c", "1", "0", ""},
		},
		"another size, of a quarantine": {
			{"acquire a quarantine=60000", "1 30s 0", "1 30s 0", "0=a"},
			{"over 0 5000", "", "", ""},
			{"acquire b of=4", "0 0s 3", "0 0s 3", "0=a!"},
		},
		"in turn": {
			{"acquire a of=1", "1 30s 0", "1 30s 0", "0=a"},
			{"acquire b of=1 waited=5000 marks=3000", "0 30s 0", "0 30s 0", "0=a ~b"},
			{"acquire c of=1 waited=9000 marks=3000", "0 30s 0", "0 30s 0", "0=a ~c ~b"},
			{"release a", "1", "0", "~c ~b"},
			{"acquire d of=1", "0 3s 0", "0 3s 0", "~c ~b"},
			{"acquire b of=1 waited=5000 marks=3000", "0 3s 0", "0 3s 0", "~c ~b"},
			{"acquire b of=1 waited=99000 marks=3000", "0 3s 0", "0 3s 0", "~c ~b"},
			{"acquire c of=1 waited=9000 marks=3000", "1 30s 0", "1 30s 0", "0=c ~b"},
			{"release c", "1", "0", "~b"},
			{"release b", "0", "0", ""},
		},
		"two are free, and one waits": {
			{"acquire b of=2 waited=5000 marks=3000", "1 30s 0", "1 30s 0", "0=b"},
			{"acquire c of=2", "1 30s 1", "1 30s 1", "0=b 1=c"},
			{"acquire d of=2 waited=5000 marks=3000", "0 30s 0", "0 30s 0", "0=b 1=c ~d"},
			{"release b", "1", "0", "1=c ~d"},
			{"acquire e of=2", "0 3s 0", "0 3s 0", "1=c ~d"},
			{"release c", "1", "0", "~d"},
			{"acquire e of=2", "1 30s 0", "1 30s 0", "0=e ~d"},
			{"dead d", "", "", ""},
			{"acquire f of=2", "1 30s 1", "1 30s 1", "0=e 1=f"},
		},
		"late": {
			{"acquire a of=1", "1 30s 0", "1 30s 0", "0=a"},
			{"late acquire b of=1 waited=5000 marks=3000", "-1", "-1", "0=a"},
			{"late renew a 60000", "-1", "-1", "0=a"},
		},
		"memory is short: no number is given, and those that have one may keep, lose and release it": {
			{"acquire a quarantine=60000", "1 30s 0", "1 30s 0", "0=a"},
			{"acquire b quarantine=60000", "1 30s 1", "1 30s 1", "0=a 1=b"},
			{"memory is short", "", "", ""},
			{"acquire c", "OOM", "OOM", "0=a 1=b"},
			{"renew a 60000", "1 60s", "1 60s", "0=a 1=b"},
			{"lose a", "1", "0", "0=a! 1=b"},
			{"release b", "1", "0", "0=a!"},
			{"free 0 a", "1", "0", ""},
		},
		"none outlives the leases": {
			{"acquire a of=1", "1 30s 0", "1 30s 0", "0=a"},
			{"acquire b of=1 waited=5000 marks=3000", "0 30s 0", "0 30s 0", "0=a ~b"},
			{"dead b", "", "", ""},
			{"lapse 0", "", "", ""},
			{"acquire c of=1", "1 30s 0", "1 30s 0", "0=c"},
		},
	} {
		t.Run(name, func(t *testing.T) { scripttest.Play(&newAsker(t, rdb).Player, steps) })
	}
}

// Whatever is taken, the lowest number that is free is given, and each number has one owner.
func TestTheLowestOfAnyThatAreFree(t *testing.T) {
	const size = 9
	rdb := redistest.Mini(t).Client()
	for taken := range 1 << size {
		if taken%7 != 3 && taken < 1<<size-16 {
			continue // enough of them
		}
		a := newAsker(t, rdb)
		lowest := -1
		for n := range size {
			if taken>>n&1 == 1 {
				a.Ask(time.Minute, fmt.Sprintf("acquire o%d of=%d prefer=%d", n, size, n))
			} else if lowest < 0 {
				lowest = n
			}
		}
		want := fmt.Sprintf("1 30s %d", lowest)
		if lowest < 0 {
			want = "0 30s 0"
		}
		redistest.Equal(t, a.Ask(time.Minute, fmt.Sprintf("acquire me of=%d", size)), want, "%q, want %q (%09b taken)", want, taken)
	}
}

// More leases are over than one call takes back.
func TestManyLeasesAreOverAtOnce(t *testing.T) {
	const size = 120
	a := newAsker(t, redistest.Mini(t).Client())
	for n := range size {
		a.Ask(time.Minute, fmt.Sprintf("acquire o%d of=%d", n, size))
	}
	for n := range size {
		a.Do("lapse " + strconv.Itoa(n))
	}
	given := map[string]bool{}
	for n := range size {
		reply := a.Ask(time.Minute, fmt.Sprintf("acquire p%d of=%d", n, size))
		if !strings.HasPrefix(reply, "1 ") || given[reply] {
			t.Fatalf("number %d: %q", n, reply)
		}
		given[reply] = true
	}
	if got := a.Ask(time.Minute, fmt.Sprintf("acquire q of=%d", size)); !strings.HasPrefix(got, "0 ") {
		t.Errorf("one too many: %q", got)
	}
}

// A key of another type is left as it is.
func TestScriptsThatChangeNothing(t *testing.T) {
	scripttest.OnMini(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client) {
		newAsker(t, rdb).Foreign(mini, "n", "acquire a", "renew a 1", "release a", "lose a", "free 0 a", "look 0")
	})
}

// Whichever command of a script fails, nothing is left without an expiry or an owner, and the same
// request, sent once more, ends as if none had failed.
func TestFailingMidway(t *testing.T) {
	mini := redistest.Mini(t)
	rdb := mini.Client()
	scripttest.Midway(mini, func() *scripttest.Player { return &newAsker(t, rdb).Player }, [][]string{
		{"acquire a"},
		{"acquire a", "acquire a"},
		{"acquire a", "acquire b prefer=2 quarantine=1000"},
		{"acquire a", "lapse 0", "acquire b"},
		{"acquire a", "lapse 0", "acquire b of=4"},
		{"acquire a of=1", "acquire b of=1 waited=0 marks=3000"},
		{"acquire a of=1", "acquire b of=1 waited=0 marks=3000", "release a", "acquire b of=1"},
		{"acquire a", "renew a 60000"},
		{"acquire a", "acquire b", "release a"},
		{"acquire a quarantine=1000", "lose a"},
		{"acquire a", "free 0 a"},
	})
}

// If neither the expiry can be set nor the number be taken back, nothing stays without an expiry.
func TestNothingStaysWithoutAnExpiry(t *testing.T) {
	rdb := redistest.Server(t).Client(t)
	for _, refused := range [][]any{{"-pexpire"}, {"-pexpire", "-zrem"}} {
		a := newAsker(t, rdb)
		user := append([]any{"ACL", "SETUSER", "some", "on", "nopass", "~*", "&*", "+@all"}, refused...)
		redistest.Must(t, rdb.Do(t.Context(), user...).Err())
		b := newAsker(t, redis.NewClient(&redis.Options{Addr: rdb.Options().Addr, Username: "some", Password: "x"}))
		for _, command := range []string{"acquire a", "acquire a waited=0 marks=3000"} {
			if got := b.Ask(time.Minute, command); got == "1 30s 0" {
				t.Errorf("%v: granted", refused)
			}
			a.state()
		}
		_ = b.RDB.Close()
	}
}
