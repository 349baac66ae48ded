// These tests run each script in each state that the script may find.

package quorum

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

const (
	key = "a key"
	// seen is the marker that the script replaces by "new".
	seen = "empty:5:x"
	// toCome is a time that is still to come.
	toCome = "9007199254740000:x"
	last   = "1795245451996162"
)

var bg = context.Background()

// found is a state in which a script may find its key.
type found struct {
	what  string
	value string // "" for none, "list" for another type
	life  time.Duration
	want  string // the value after the script, with T for its time; for the script mark, also its answer
	ttl   bool   // whether the key has an expiry afterwards
	fails string // the beginning of the error
}

func (s found) put(t *testing.T, rdb *redis.Client) {
	t.Helper()
	rdb.Del(bg, key)
	var err error
	switch s.value {
	case "":
	case "list":
		err = rdb.RPush(bg, key, "x").Err()
	default:
		err = rdb.Set(bg, key, s.value, s.life).Err()
	}
	redistest.Must(t, err)
}

func TestScripts(t *testing.T) { scripttest.OnServers(t, testScripts) }

func testScripts(t *testing.T, rdb *redis.Client) {
	for write, states := range map[string][]found{
		"": {
			{what: "absent"},
			{what: "present", value: "new:5", want: "new:5"},
			{what: "wrong type", value: "list", fails: "WRONGTYPE"},
		},
		"empty": {
			{what: "absent", want: "empty:T:abc"},
			{what: "another's", value: "empty:6:x", want: "empty:6:x"},
			{what: "present", value: "lost:5", want: "lost:5"},
			{what: "still to come", value: "new:" + toCome, want: "new:" + toCome},
			{what: "wrong type", value: "list", fails: "WRONGTYPE"},
		},
		"new": {
			{what: "absent"},
			{what: "as it was seen", value: seen, want: "new:T:abc"},
			{what: "empty since", value: "empty:6:x", want: "empty:6:x"},
			{what: "another's", value: "lost:5", want: "lost:5"},
			{what: "still to come", value: "new:" + toCome, want: "new:" + toCome},
			{what: "wrong type", value: "list", fails: "WRONGTYPE"},
		},
		"lost": {
			{what: "absent", want: "lost:T:abc"},
			{what: "empty", value: "empty:6:x", want: "lost:T:abc"},
			{what: "another's", value: "new:5:x", want: "new:5:x"},
			{what: "still to come", value: "lost:" + toCome, want: "lost:T:abc"},
			{what: "no marker", value: "none of ours", want: "none of ours"},
		},
	} {
		for _, s := range states {
			t.Run(fmt.Sprintf("mark %q, %s", write, s.what), func(t *testing.T) { s.try(t, rdb, markScript, write, "abc", seen) })
		}
	}
	for _, s := range []found{
		{what: "absent", want: last, ttl: true},
		{what: "smaller", value: "9", life: time.Minute, want: last, ttl: true},
		{what: "smaller, without end", value: "9", want: last},
		{what: "equal", value: last, life: time.Minute, want: last, ttl: true},
		{what: "greater", value: "1795245451996163", want: "1795245451996163"},
		{what: "wrong type", value: "list", fails: "WRONGTYPE"},
		{what: "no number", value: "x", want: "x", fails: "ERR"},
	} {
		t.Run("raise, "+s.what, func(t *testing.T) { s.try(t, rdb, raiseScript, last, 60000) })
	}
	rdb.Del(bg, key)
	reply, err := rdb.Eval(bg, markScript.Source(), []string{key}, 1, "empty", "abc", "").Slice()
	if err != nil || reply[0] != int64(conn.Late) || rdb.Exists(bg, key).Val() != 0 {
		t.Errorf("mark, late: %v, %v", reply, err)
	}
}

// turn.lua keeps the lines of those that wait, in the order of their time; it drops lines that are over, and those of
// before a clock was set back. Nothing that it writes stays.
func TestTurns(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		mini := redistest.Mini(t)
		rdb := mini.Client()
		ms := time.Now().UnixMilli()
		line := func(waiter string, since, until int64) string {
			return fmt.Sprintf("%s %d %d\n", waiter, ms+since, ms+until)
		}
		a, b := line("a", -100, 50), line("b", -200, 50)
		me := func(since int64) string { return line("me", since, 1500) }
		for _, tc := range []struct {
			what, before string
			waited       int
			want         string
			ahead        string
		}{
			{"alone", "", 30, me(-30), "[0]"},
			{"behind both", a + b, 30, a + b + me(-30), "[2]"},
			{"between them", a + b, 150, a + b + me(-150), "[1]"},
			{"as long as another", line("z", -30, 50) + line("b", -30, 50), 30, line("z", -30, 50) + line("b", -30, 50) + me(-30), "[1]"},
			{"once more", me(-30) + a, 40, a + me(-40), "[1]"},
			{"beside one that is over", line("gone", -100, 0) + b, 30, b + me(-30), "[1]"},
			{"beside one of before the clock was set back", line("old", -100, 3600_000) + b, 30, b + me(-30), "[1]"},
			{"leaves", a + me(-30), -1, a, "[1]"},
			{"leaves last", me(-30), -1, "", "[0]"},
			{"leaves, and was not there", a, -1, a, "[1]"},
			{"behind very many", strings.Repeat(a, 100), 30, strings.Repeat(a, 100), "[100]"},
		} {
			mini.FlushAll()
			if tc.before != "" {
				rdb.Set(bg, key, tc.before, time.Second)
			}
			reply, err := rdb.Eval(bg, turnScript.Source(), []string{key}, int64(1)<<60, "me", tc.waited, 1500).Slice()
			if err != nil || fmt.Sprint(reply[2:]) != tc.ahead {
				t.Errorf("%s: %v, %v, want %s", tc.what, reply, err, tc.ahead)
			}
			if text := rdb.Get(bg, key).Val(); text != tc.want || mini.Exists(key) && mini.TTL(key) == 0 {
				t.Errorf("%s: %q, want %q, for %v", tc.what, text, tc.want, mini.TTL(key))
			}
		}
		rdb.Del(bg, key)
		rdb.RPush(bg, key, "x")
		if err := rdb.Eval(bg, turnScript.Source(), []string{key}, int64(1)<<60, "me", 1, 1500).Err(); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Error(err)
		}
	})
}

// try runs the script twice in this state. The second run must change nothing.
func (s found) try(t *testing.T, rdb *redis.Client, script *conn.Script, args ...any) {
	s.put(t, rdb)
	after := ""
	for range 2 {
		before := time.Now().UnixMicro()
		reply, err := rdb.Eval(bg, script.Source(), []string{key}, append([]any{int64(1) << 60}, args...)...).Slice()
		if s.fails != "" {
			if err == nil || !strings.Contains(err.Error(), s.fails) {
				t.Fatalf("%v, %v", reply, err)
			}
			continue
		}
		if err != nil || reply[0] != int64(1) || reply[1].(int64) < before-1_000_000 {
			t.Fatalf("%v, %v", reply, err)
		}
		if after == "" {
			after = strings.Replace(s.want, "T", fmt.Sprint(reply[1]), 1)
		}
		if value := rdb.Get(bg, key).Val(); value != after || len(reply) > 2 && reply[2] != after {
			t.Errorf("it holds %q, want %q; answered %v", value, after, reply)
		}
		if ttl := rdb.PTTL(bg, key).Val(); s.ttl != (ttl > 0) {
			t.Errorf("it lives for %v", ttl)
		}
	}
}

// If a script fails inside, another run of the script mends whatever the failure left.
func TestScripts_FailInside(t *testing.T) {
	scripttest.OnMini(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client) {
		raise := func() error { return rdb.Eval(bg, raiseScript.Source(), []string{key}, 0, "7", 60000).Err() }
		left := func() string { return fmt.Sprint(rdb.Get(bg, key).Val(), " for ", mini.TTL(key)) }
		scripttest.Mended(t, mini, mini.FlushAll, raise, left, "7 for 1m0s")
	})
}

// Where memory is short, or the rights are missing, the scripts write nothing, and still report the marker.
func TestReal_ScriptsOutOfMemoryAndDenied(t *testing.T) {
	server := redistest.Server(t)
	rdb, admin := server.Client(t), server.Admin()
	redistest.Must(t, admin.Set(bg, key, "new:5", 0).Err())
	refused := func(what string) {
		t.Helper()
		for _, err := range []error{
			rdb.Eval(bg, markScript.Source(), []string{"other"}, int64(1)<<60, "empty", "abc", "").Err(),
			rdb.Eval(bg, raiseScript.Source(), []string{"other"}, 0, "7", 60000).Err(),
		} {
			if err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("want %s: %v", what, err)
			}
		}
	}
	admin.ConfigSet(bg, "maxmemory", "1")
	if reply, err := rdb.Eval(bg, markScript.Source(), []string{key}, int64(1)<<60, "", "", "").Slice(); err != nil || reply[2] != "new:5" {
		t.Errorf("%v, %v", reply, err)
	}
	refused("OOM")
	admin.ConfigSet(bg, "maxmemory", "0")
	redistest.Must(t, admin.ACLSetUser(bg, "default", "-set").Err())
	refused("") // by whatever words
	if n := admin.Exists(bg, "other").Val(); n != 0 {
		t.Error("something was written")
	}
}
