// These tests run the scripts of what is asked of a holder, each step twice, as if its reply were lost; and read
// messages.

package lockhash

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/scripttest"
)

type step scripttest.Step

// asking returns the script, the keys and the arguments of a command: ask, wanted <owner>,
// claim <claimant> 0, granted <claimant> <came>, withdraw <claimant>. The keys are n, asked, newest and alive.
func asking(command string) (*conn.Script, []string, []any) {
	w := strings.Fields(command)
	switch w[0] {
	case "ask":
		return askScript, []string{"n", "asked"}, []any{"PUBLISH", "c"}
	case "wanted":
		return wantedScript, []string{"asked", "alive"}, []any{w[1]}
	case "claim", "granted":
		return claimScript, []string{"newest", "n"}, []any{w[1], w[2], 60_000, "PUBLISH", "c"}
	default:
		return withdrawScript, []string{"newest"}, []any{w[1], 60_000}
	}
}

// later is when the second part of a play begins, in microseconds after the first.
const later = 11_000_000

// playAsking plays the steps on a server whose clock stands still, but for "later". T2 is 2 µs after the first instant, U2
// after the second.
func playAsking(t *testing.T, steps []step) {
	t.Helper()
	scripttest.OnMini(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client) {
		ctx, clock := context.Background(), scripttest.Now(t, rdb)
		after := func(text string) string {
			for i := range int64(9) {
				text = strings.ReplaceAll(text, fmt.Sprint(clock+i), fmt.Sprintf("T%d", i))
				text = strings.ReplaceAll(text, fmt.Sprint(clock+later+i), fmt.Sprintf("U%d", i))
			}
			return text
		}
		p := &scripttest.Player{T: t, RDB: rdb}
		p.Parts = func(command string) (*conn.Script, []string, []any) {
			for i := range int64(9) {
				command = strings.ReplaceAll(command, fmt.Sprintf("T%d", i), fmt.Sprint(clock+i))
				command = strings.ReplaceAll(command, fmt.Sprintf("U%d", i), fmt.Sprint(clock+later+i))
			}
			return asking(command)
		}
		p.Words = func(_ string, reply []any) string { return after(scripttest.Text(reply, nil)) }
		p.Left = func() string {
			scripttest.Ends(t, rdb, "asked", "newest")
			words := []string{}
			for _, key := range []string{"asked", "newest"} {
				if text := rdb.Get(ctx, key).Val(); text != "" {
					words = append(words, fmt.Sprintf("%s %s %v", key, text, rdb.PTTL(ctx, key).Val()))
				}
			}
			return after(strings.Join(words, ", "))
		}
		p.Set = func(w []string) bool {
			switch w[0] {
			case "hold":
				rdb.HSet(ctx, "n", w[1], 1)
			case "for":
				d, _ := time.ParseDuration(w[1])
				rdb.PExpire(ctx, "n", d)
			case "later":
				time.Sleep(later * time.Microsecond)
			case "gone":
				rdb.Del(ctx, w[1])
			case "precious":
				rdb.Set(ctx, w[1], "x", time.Minute)
			case "place":
				d, _ := time.ParseDuration(w[2])
				rdb.ZAdd(ctx, "alive", redis.Z{Score: float64(time.Now().Add(d).UnixMilli()), Member: w[1]})
			default:
				return false
			}
			return true
		}
		scripttest.Play(p, steps)
		before := mini.Snapshot()
		for _, command := range []string{"ask", "claim late 0"} {
			if reply := p.Ask(-time.Microsecond, command); reply != "-1" || mini.Snapshot() != before {
				t.Errorf("%s, late: %q", command, reply)
			}
		}
	})
}

func TestAskAndWantedScripts(t *testing.T) {
	playAsking(t, []step{
		{"ask", "0", "", ""},
		{"hold a", "", "", ""},
		{"ask", "1", "", "asked a 24h0m0s"},
		{"for 20s", "", "", ""},
		{"ask", "1", "", "asked a 20s"},
		{"wanted a", "1", "", "asked a 20s"},
		{"wanted b", "0", "", "asked a 20s"},
		{"place w -1s", "", "", ""},
		{"wanted b", "0", "", "asked a 20s"},
		{"place v 2s", "", "", ""},
		{"wanted b", "1", "", "asked a 20s"},
		{"hold b", "", "", ""}, // as in a read-write lock
		{"ask", "0", "", "asked a 20s"},
		{"gone n", "", "", ""},
		{"precious n", "", "", ""},
		{"ask", "WRONGTYPE", "", "asked a 20s"},
	})
}

func TestClaimAndWithdrawScripts(t *testing.T) {
	playAsking(t, []step{
		{"claim a 0", "1 T0", "", "newest T0:a 1m0s"},
		{"claim b 0", "1 T1", "", "newest T1:b T0:a 1m0s"},
		{"claim a 0", "0", "", "newest T1:b T0:a 1m0s"}, // it comes late
		{"granted a T0", "0", "", "newest T1:b T0:a 1m0s"},
		{"granted b T1", "1 T1", "", "newest T1:b T0:a 1m0s"},
		{"withdraw b", "1", "0", "newest T0-b T0:a 1m0s"},
		{"claim b 0", "0", "", "newest T0-b T0:a 1m0s"}, // it comes late
		{"granted a T0", "1 T0", "", "newest T0:a T0-b 1m0s"},
		{"withdraw c", "1", "0", "newest T0-c T0:a T0-b 1m0s"}, // before its claim
		{"claim c 0", "0", "", "newest T0-c T0:a T0-b 1m0s"},
		{"claim d 0", "1 T1", "", "newest T1:d T0-c T0:a T0-b 1m0s"},
		{"granted lost T0", "0", "", "newest T1:d T0-c T0:a T0-b 1m0s"}, // it has been dropped, or the key was lost
		{"granted lost T3", "1 T3", "", "newest T3:lost T1:d T0-c T0:a T0-b 1m0s"},
		{"later", "", "", ""},
		{"claim e 0", "1 U0", "", "newest U0:e T3:lost T1:d T0:a 1m0s"}, // one of those may still be served
		{"granted e U0", "1 U0", "", "newest U0:e 1m0s"},
		{"granted d T1", "0", "", "newest U0:e 1m0s"},
		{"gone newest", "", "", ""},
		{"granted d T1", "1 T1", "", "newest T1:d 1m0s"},
		{"gone newest", "", "", ""},
		{"withdraw d", "1", "0", "newest U0-d 1m0s"},
	})
}

// The list has a bound, and those before it count as superseded.
func TestClaimScript_Many(t *testing.T) {
	scripttest.OnMini(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client) {
		p := &scripttest.Player{T: t, RDB: rdb, Parts: asking, Set: func([]string) bool { return false }}
		p.Words = func(_ string, reply []any) string { return fmt.Sprint(reply[0]) }
		p.Do("claim first 0")
		came := scripttest.Now(t, rdb)
		for i := range 100 {
			p.Do(fmt.Sprintf("claim %s:%d 0", strings.Repeat("x", 36), i))
		}
		list := rdb.Get(context.Background(), "newest").Val()
		if got := p.Ask(time.Minute, fmt.Sprintf("granted first %d", came)); len(strings.Fields(list)) != 64 || got != "0" {
			t.Errorf("%d are listed; the first is told %s", len(strings.Fields(list)), got)
		}
	})
}

// A message of another form, as a later version or another program may send it, hands nothing over.
func TestHandOver(t *testing.T) {
	for message, want := range map[string]line.HandOver{
		"101 7 2500":   {Owner: 101, Token: 7, Left: 2500 * time.Millisecond},
		"0":            {},
		"00":           {},
		"":             {},
		"101 7":        {},
		"101 7 2500 1": {},
		"101 7 2500 ":  {},
		"101 7 soon":   {},
	} {
		if got := new(Queue).HandOver(message); got != want {
			t.Errorf("%q hands over %+v, want %+v", message, got, want)
		}
	}
}
