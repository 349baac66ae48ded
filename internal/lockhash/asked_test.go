// These tests run the scripts of what is asked of a holder, each step twice, as if its reply were lost.

package lockhash

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

type step scripttest.Step

// asking returns the script, the keys and the arguments of a command: ask, wanted <owner>,
// claim <claimant> <came>, withdraw <claimant>. The keys are n, asked, newest and alive.
func asking(command string) (*conn.Script, []string, []any) {
	w := strings.Fields(command)
	switch w[0] {
	case "ask":
		return askScript, []string{"n", "asked"}, []any{"PUBLISH", "c"}
	case "wanted":
		return wantedScript, []string{"asked", "alive"}, []any{w[1]}
	case "claim":
		return claimScript, []string{"newest", "n"}, []any{w[1], w[2], 60_000, "PUBLISH", "c"}
	default:
		return withdrawScript, []string{"newest"}, []any{w[1], 60_000}
	}
}

// playAsking plays the steps on a server whose clock stands still: a time is shown as what it is after T.
func playAsking(t *testing.T, steps []step) {
	t.Helper()
	scripttest.OnMini(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client) {
		ctx, clock := context.Background(), scripttest.Now(t, rdb)
		after := func(text string) string {
			for i := range int64(20) {
				text = strings.ReplaceAll(text, fmt.Sprint(clock+i), fmt.Sprintf("T%d", i))
			}
			return text
		}
		p := &scripttest.Player{T: t, RDB: rdb, Parts: asking}
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
		{"withdraw a", "0", "", ""},
		{"claim a 0", "1 T0", "", "newest T0 a 1m0s"},
		{"claim b 0", "1 T1", "", "newest T1 b a 1m0s"},
		{"claim a 0", "0", "", "newest T1 b a 1m0s"}, // it comes late
		{"claim a 1", "0", "", "newest T1 b a 1m0s"},
		{"claim b 9", "1 9", "", "newest T1 b a 1m0s"},
		{"withdraw b", "1", "0", "newest T1 -b a 1m0s"},
		{"claim b 0", "0", "", "newest T1 -b a 1m0s"}, // it comes late
		{"claim a 1", "1 1", "", "newest T1 -b a 1m0s"},
		{"claim a 0", "1 T1", "", "newest T1 -b a 1m0s"},
		{"claim lost 1", "0", "", "newest T1 -b a 1m0s"},                                                  // pushed out, or from before the key was lost
		{"claim old 9000000000000001", "1 9000000000000001", "", "newest 9000000000000001 old -b a 1m0s"}, // the clock was set back
		{"gone newest", "", "", ""},
		{"claim a 1", "1 1", "", "newest 1 a 1m0s"},
		{"claim c 0", "1 T0", "", "newest T0 c a 1m0s"},
		{"claim d 0", "1 T1", "", "newest T1 d c a 1m0s"},
		{"claim e 0", "1 T2", "", "newest T2 e d c a 1m0s"},
		{"claim f 0", "1 T3", "", "newest T3 f e d c a 1m0s"},
		{"claim g 0", "1 T4", "", "newest T4 g f e d c a 1m0s"},
		{"claim h 0", "1 T5", "", "newest T5 h g f e d c a 1m0s"},
		{"claim i 0", "1 T6", "", "newest T6 i h g f e d c a 1m0s"},
		{"claim j 0", "1 T7", "", "newest T7 j i h g f e d c 1m0s"},
		{"claim a 1", "0", "", "newest T7 j i h g f e d c 1m0s"},
		{"hold a", "", "", ""},
		{"precious n", "", "", ""},
		{"claim k 0", "1 T8", "", "newest T8 k j i h g f e d 1m0s"},
	})
}
