// These tests run each script on its own, and check what it answers and what it leaves. Each step runs
// twice, as if its reply were lost. A script may run late or without memory, or may fail midway.

package slots

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
)

// asker runs scripts as a server sees them, one sending at a time. The keys are n, t, w and a.
type asker struct {
	t     testing.TB
	rdb   *redis.Client
	token int64 // the last one
}

func newAsker(t testing.TB, rdb *redis.Client) *asker {
	rdb.FlushAll(t.Context())
	return &asker{t: t, rdb: rdb}
}

const length = 30_000

// ask runs a command, and returns its reply without the server's clock and the token, times to live in
// seconds. The commands are
//
//	acquire <owner> [of=3] [prefer=-1] [quarantine=0] [waited=-1] [marks=0]
//	renew <owner> <ms>, release <owner>, lose <owner>, free <number> <owner>, look <number>
func (a *asker) ask(left time.Duration, command string) string {
	a.t.Helper()
	reply, err := a.eval(left, command)
	if err != nil {
		for _, code := range []string{"WRONGTYPE", "OOM", "injected"} {
			if strings.Contains(err.Error(), code) {
				return code
			}
		}
		return err.Error()
	}
	words := []string{fmt.Sprint(reply[0])}
	for i, v := range reply[2:] {
		n, _ := v.(int64)
		switch acquires := strings.HasPrefix(command, "acquire"); {
		case i == 0 && (acquires || strings.HasPrefix(command, "renew")):
			words = append(words, strconv.FormatInt((n+999)/1000, 10)+"s")
		case i == 1 && acquires && reply[0] == int64(1):
			if n <= a.token {
				a.t.Errorf("%s: the token %d is not more than %d", command, n, a.token)
			}
			a.token = n
		default:
			words = append(words, fmt.Sprint(v))
		}
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

func (a *asker) eval(left time.Duration, command string) ([]any, error) {
	a.t.Helper()
	ctx := context.Background()
	now, err := a.rdb.Time(ctx).Result()
	if err != nil {
		a.t.Fatal(err)
	}
	script, keys, args := parts(command)
	args = append([]any{now.UnixMicro() + left.Microseconds()}, args...)
	return a.rdb.Eval(ctx, script.Source(), keys, args...).Slice()
}

// parts returns the script, the keys and the arguments of a command.
func parts(command string) (*conn.Script, []string, []any) {
	w := strings.Fields(command)
	option := func(name string, value int) int {
		for _, word := range w {
			if text, ok := strings.CutPrefix(word, name+"="); ok {
				value, _ = strconv.Atoi(text)
			}
		}
		return value
	}
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
	for _, key := range []string{"n", "t", "w", "a"} {
		if a.rdb.PTTL(ctx, key).Val() == -1 {
			a.t.Errorf("%s stands without an expiry", key)
		}
	}
	now := a.rdb.Time(ctx).Val().UnixMilli()
	var words []string
	owners, numbers := 0, 0
	for _, z := range a.rdb.ZRangeWithScores(ctx, "n", 0, -1).Val() {
		member := z.Member.(string)
		switch {
		case z.Score < 0:
			owners++
			whole := int64(z.Score) + 1<<53
			number, quarantine := whole>>37, whole&(1<<37-1)
			back := int64(a.rdb.ZScore(ctx, "n", strconv.FormatInt(number, 10)).Val())
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
		a.t.Errorf("%d numbers, %d owners", numbers, owners)
	}
	if size := a.rdb.ZScore(ctx, "n", "size").Val(); owners == 0 && size != 0 {
		words = append(words, "size")
	}
	waiting := a.rdb.ZRange(ctx, "w", 0, -1).Val()
	if n := a.rdb.ZCard(ctx, "a").Val(); n != int64(len(waiting)) {
		a.t.Errorf("%d wait, and %d are alive", len(waiting), n)
	}
	for _, owner := range waiting {
		words = append(words, "~"+owner)
	}
	return strings.Join(words, " ")
}

// set changes the state: "lapse 0" has the number come back by now; "over 0 5000" ends its lease and leaves
// 5 s of its quarantine; "dead a" ends the mark of a.
func (a *asker) set(command string) bool {
	w, ctx := strings.Fields(command), context.Background()
	now := a.rdb.Time(ctx).Val().UnixMilli()
	switch w[0] {
	case "lapse":
		a.rdb.ZAddXX(ctx, "n", redis.Z{Score: 1, Member: w[1]})
	case "over":
		left, _ := strconv.ParseInt(w[2], 10, 64)
		a.rdb.ZAddXX(ctx, "n", redis.Z{Score: float64(now + left), Member: w[1]})
	case "dead":
		a.rdb.ZAddXX(ctx, "a", redis.Z{Score: 1, Member: w[1]})
	default:
		return false
	}
	return true
}

// step is a command with its reply, what a second sending is answered, and the state after each.
type step struct{ command, reply, again, state string }

func (a *asker) play(steps []step) {
	a.t.Helper()
	for i, s := range steps {
		if a.set(s.command) {
			continue
		}
		for n, want := range []string{s.reply, s.again} {
			if got := a.ask(time.Minute, s.command); got != want {
				a.t.Errorf("step %d, %s, sending %d: %q, want %q", i, s.command, n+1, got, want)
			}
			if got := a.state(); got != s.state {
				a.t.Errorf("step %d, %s, sending %d leaves %q, want %q", i, s.command, n+1, got, s.state)
			}
		}
	}
}

func TestScripts(t *testing.T) {
	t.Run("embedded", func(t *testing.T) { testScripts(t, redistest.Mini(t).Client()) })
	t.Run("real", func(t *testing.T) { testScripts(t, redistest.Server(t).Client(t)) })
}

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
		"none outlives the leases": {
			{"acquire a of=1", "1 30s 0", "1 30s 0", "0=a"},
			{"acquire b of=1 waited=5000 marks=3000", "0 30s 0", "0 30s 0", "0=a ~b"},
			{"dead b", "", "", ""},
			{"lapse 0", "", "", ""},
			{"acquire c of=1", "1 30s 0", "1 30s 0", "0=c"},
		},
	} {
		t.Run(name, func(t *testing.T) { newAsker(t, rdb).play(steps) })
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
				a.ask(time.Minute, fmt.Sprintf("acquire o%d of=%d prefer=%d", n, size, n))
			} else if lowest < 0 {
				lowest = n
			}
		}
		want := fmt.Sprintf("1 30s %d", lowest)
		if lowest < 0 {
			want = "0 30s 0"
		}
		if got := a.ask(time.Minute, fmt.Sprintf("acquire me of=%d", size)); got != want {
			t.Errorf("%09b taken: %q, want %q", taken, got, want)
		}
	}
}

// More leases are over than one call takes back.
func TestManyLeasesAreOverAtOnce(t *testing.T) {
	const size = 120
	a := newAsker(t, redistest.Mini(t).Client())
	for n := range size {
		a.ask(time.Minute, fmt.Sprintf("acquire o%d of=%d", n, size))
	}
	for n := range size {
		a.set("lapse " + strconv.Itoa(n))
	}
	given := map[string]bool{}
	for n := range size {
		reply := a.ask(time.Minute, fmt.Sprintf("acquire p%d of=%d", n, size))
		if !strings.HasPrefix(reply, "1 ") || given[reply] {
			t.Fatalf("number %d: %q", n, reply)
		}
		given[reply] = true
	}
	if got := a.ask(time.Minute, fmt.Sprintf("acquire q of=%d", size)); !strings.HasPrefix(got, "0 ") {
		t.Errorf("one too many: %q", got)
	}
}

// A key of another type is left as it is. What comes late does nothing.
func TestScriptsThatChangeNothing(t *testing.T) {
	rdb := redistest.Mini(t).Client()
	a := newAsker(t, rdb)
	rdb.Set(t.Context(), "n", "x", 0)
	for _, command := range []string{"acquire a", "renew a 1", "release a", "lose a", "free 0 a", "look 0"} {
		if got := a.ask(time.Minute, command); got != "WRONGTYPE" {
			t.Errorf("foreign, %s: %q", command, got)
		}
	}
	if rdb.Get(t.Context(), "n").Val() != "x" || rdb.DBSize(t.Context()).Val() != 1 {
		t.Error("something was changed")
	}
	a = newAsker(t, rdb)
	a.ask(time.Minute, "acquire a of=1")
	for _, command := range []string{"acquire b of=1 waited=5000 marks=3000", "renew a 60000"} {
		if got, left := a.ask(-time.Millisecond, command), a.state(); got != "-1" || left != "0=a" {
			t.Errorf("%s, late: %q, leaves %q", command, got, left)
		}
	}
}

// When memory is short nobody is given a number. Those that have one keep it, and may give it back or lose
// it.
func TestOutOfMemory(t *testing.T) {
	rdb := redistest.Server(t).Client(t)
	a := newAsker(t, rdb)
	a.ask(time.Minute, "acquire a quarantine=60000")
	a.ask(time.Minute, "acquire b quarantine=60000")
	if err := rdb.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	a.play([]step{
		{"acquire c", "OOM", "OOM", "0=a 1=b"},
		{"renew a 60000", "1 60s", "1 60s", "0=a 1=b"},
		{"lose a", "1", "0", "0=a! 1=b"},
		{"release b", "1", "0", "0=a!"},
		{"free 0 a", "1", "0", ""},
	})
}

// Whichever command of a script fails, nothing is left without an expiry or an owner, and the same
// request, sent once more, ends as if none had failed.
func TestFailingMidway(t *testing.T) {
	m := redistest.Mini(t)
	a := newAsker(t, m.Client())
	for _, tc := range []struct {
		before  []string
		command string
	}{
		{nil, "acquire a"},
		{[]string{"acquire a"}, "acquire a"},
		{[]string{"acquire a"}, "acquire b prefer=2 quarantine=1000"},
		{[]string{"acquire a", "lapse 0"}, "acquire b"},
		{[]string{"acquire a of=1"}, "acquire b of=1 waited=0 marks=3000"},
		{[]string{"acquire a of=1", "acquire b of=1 waited=0 marks=3000", "release a"}, "acquire b of=1"},
		{[]string{"acquire a"}, "renew a 60000"},
		{[]string{"acquire a", "acquire b"}, "release a"},
		{[]string{"acquire a quarantine=1000"}, "lose a"},
		{[]string{"acquire a"}, "free 0 a"},
	} {
		given := func() {
			*a = *newAsker(t, a.rdb)
			for _, c := range tc.before {
				if !a.set(c) {
					a.ask(time.Minute, c)
				}
			}
		}
		given()
		reply, again := a.ask(time.Minute, tc.command), ""
		state := a.state()
		again = a.ask(time.Minute, tc.command)
		for k, fired := 1, true; fired; k++ {
			given()
			disarm := m.FailInside(k)
			_, err := a.eval(time.Minute, tc.command)
			fired = disarm()
			a.state() // it fails if an expiry or an owner is missing
			got := a.ask(time.Minute, tc.command)
			if left := a.state(); !slices.Contains([]string{reply, again}, got) || left != state {
				t.Errorf("%v, %s: command %d fails (%v), and then %q leaves %q, want %q and %q",
					tc.before, tc.command, k, err, got, left, reply, state)
			}
		}
	}
}

// If neither the expiry can be set nor the number be taken back, nothing stays without an expiry.
func TestNothingStaysWithoutAnExpiry(t *testing.T) {
	rdb := redistest.Server(t).Client(t)
	for _, refused := range [][]any{{"-pexpire"}, {"-pexpire", "-zrem"}} {
		a := newAsker(t, rdb)
		user := append([]any{"ACL", "SETUSER", "some", "on", "nopass", "~*", "&*", "+@all"}, refused...)
		if err := rdb.Do(t.Context(), user...).Err(); err != nil {
			t.Fatal(err)
		}
		b := &asker{t: t, rdb: redis.NewClient(&redis.Options{Addr: rdb.Options().Addr, Username: "some", Password: "x"})}
		for _, command := range []string{"acquire a", "acquire a waited=0 marks=3000"} {
			if got := b.ask(time.Minute, command); got == "1 30s 0" {
				t.Errorf("%v: granted", refused)
			}
			a.state()
		}
		_ = b.rdb.Close()
	}
}
