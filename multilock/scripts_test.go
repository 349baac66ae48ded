// These tests run each script in each state that the script may find.

package multilock

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

const key = "a key"

var bg = context.Background()

// onEach runs f on the embedded server and on a real one.
func onEach(t *testing.T, f func(t *testing.T, rdb *redis.Client)) {
	t.Run("embedded", func(t *testing.T) { f(t, redistest.Mini(t).Client()) })
	t.Run("real", func(t *testing.T) { f(t, redistest.Server(t).Client(t)) })
}

// found is a state in which a script may find its key.
type found struct {
	what  string
	put   func(rdb *redis.Client) error
	want  string // the value after the script; "" for none
	reply string // the marker, for the script mark
	ttl   bool   // whether the key has an expiry afterwards
	fails string // the beginning of the error
}

// seen is the marker that the script replaces by "new".
const seen = "empty:5:x"

func nothing(*redis.Client) error { return nil }

func put(value string, ttl time.Duration) func(*redis.Client) error {
	return func(rdb *redis.Client) error { return rdb.Set(bg, key, value, ttl).Err() }
}

func list(rdb *redis.Client) error { return rdb.RPush(bg, key, "x").Err() }

func TestScripts(t *testing.T) {
	mark := map[string][]found{
		"": {
			{what: "absent", put: nothing},
			{what: "present", put: put("new:5", 0), want: "new:5", reply: "new:5"},
			{what: "wrong type", put: list, fails: "WRONGTYPE"},
		},
		"empty": {
			{what: "absent", put: nothing, want: "empty:T:abc", reply: "empty:T:abc"},
			{what: "another's", put: put("empty:6:x", 0), want: "empty:6:x", reply: "empty:6:x"},
			{what: "present", put: put("lost:5", 0), want: "lost:5", reply: "lost:5"},
			{what: "still to come", put: put("new:9007199254740000:x", 0), want: "new:9007199254740000:x", reply: "new:9007199254740000:x"},
			{what: "wrong type", put: list, fails: "WRONGTYPE"},
		},
		"new": {
			{what: "absent", put: nothing},
			{what: "as it was seen", put: put(seen, 0), want: "new:T:abc", reply: "new:T:abc"},
			{what: "empty since", put: put("empty:6:x", 0), want: "empty:6:x", reply: "empty:6:x"},
			{what: "another's", put: put("lost:5", 0), want: "lost:5", reply: "lost:5"},
			{what: "still to come", put: put("new:9007199254740000:x", 0), want: "new:9007199254740000:x", reply: "new:9007199254740000:x"},
			{what: "wrong type", put: list, fails: "WRONGTYPE"},
		},
		"lost": {
			{what: "absent", put: nothing, want: "lost:T:abc", reply: "lost:T:abc"},
			{what: "empty", put: put("empty:6:x", 0), want: "lost:T:abc", reply: "lost:T:abc"},
			{what: "another's", put: put("new:5:x", 0), want: "new:5:x", reply: "new:5:x"},
			{what: "still to come", put: put("lost:9007199254740000:x", 0), want: "lost:T:abc", reply: "lost:T:abc"},
			{what: "no marker", put: put("none of ours", 0), want: "none of ours", reply: "none of ours"},
		},
	}
	raise := []found{
		{what: "absent", put: nothing, want: "1795245451996162", ttl: true},
		{what: "smaller", put: put("9", time.Minute), want: "1795245451996162", ttl: true},
		{what: "smaller, without end", put: put("9", 0), want: "1795245451996162"},
		{what: "equal", put: put("1795245451996162", time.Minute), want: "1795245451996162", ttl: true},
		{what: "greater", put: put("1795245451996163", 0), want: "1795245451996163"},
		{what: "wrong type", put: list, fails: "WRONGTYPE"},
		{what: "no number", put: put("x", 0), want: "x", fails: "ERR"},
	}
	onEach(t, func(t *testing.T, rdb *redis.Client) {
		for write, states := range mark {
			for _, s := range states {
				t.Run(fmt.Sprintf("mark %q, %s", write, s.what), func(t *testing.T) { try(t, rdb, s, markScript, write, "abc", seen) })
			}
		}
		for _, s := range raise {
			t.Run("raise, "+s.what, func(t *testing.T) { try(t, rdb, s, raiseScript, "1795245451996162", 60000) })
		}
		t.Run("mark, late", func(t *testing.T) {
			rdb.Del(bg, key)
			reply, err := rdb.Eval(bg, markScript.Source(), []string{key}, 1, "empty", "abc", "").Slice()
			if err != nil || reply[0] != int64(conn.Late) || rdb.Exists(bg, key).Val() != 0 {
				t.Errorf("%v, %v", reply, err)
			}
		})
	})
}

// try runs the script twice in this state. The second run must change nothing.
func try(t *testing.T, rdb *redis.Client, s found, script *conn.Script, args ...any) {
	rdb.Del(bg, key)
	if err := s.put(rdb); err != nil {
		t.Fatal(err)
	}
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
		value := rdb.Get(bg, key).Val()
		if after == "" {
			after = strings.Replace(s.want, "T", fmt.Sprint(reply[1]), 1)
		}
		if value != after {
			t.Errorf("it holds %q, want %q", value, after)
		}
		if len(reply) > 2 && reply[2] != strings.Replace(s.reply, s.want, after, 1) {
			t.Errorf("answered %q, want %q", reply[2], s.reply)
		}
		if ttl := rdb.PTTL(bg, key).Val(); s.ttl != (ttl > 0) {
			t.Errorf("it lives for %v", ttl)
		}
	}
}

// If a script fails inside, another run of the script mends whatever the failure left.
func TestScripts_FailInside(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		mini := redistest.Mini(t)
		rdb := mini.Client()
		for k, fired := 1, true; fired; k++ {
			mini.FlushAll()
			disarm := mini.FailInside(k)
			_, err := rdb.Eval(bg, raiseScript.Source(), []string{key}, 0, "7", 60000).Result()
			if fired = disarm(); fired && err == nil {
				t.Errorf("command %d failed and nobody was told", k)
			}
			if _, err := rdb.Eval(bg, raiseScript.Source(), []string{key}, 0, "7", 60000).Result(); err != nil {
				t.Error(err)
			}
			if rdb.Get(bg, key).Val() != "7" || rdb.PTTL(bg, key).Val() != time.Minute {
				t.Errorf("after a failure of command %d: %s", k, mini.Snapshot())
			}
		}
	})
}

// Where memory is short, the scripts write nothing, and still report the marker.
func TestReal_ScriptsOutOfMemoryAndDenied(t *testing.T) {
	server := redistest.Server(t)
	rdb, admin := server.Client(t), server.Admin()
	if err := admin.Set(bg, key, "new:5", 0).Err(); err != nil {
		t.Fatal(err)
	}
	admin.ConfigSet(bg, "maxmemory", "1")
	if reply, err := rdb.Eval(bg, markScript.Source(), []string{key}, int64(1)<<60, "", "", "").Slice(); err != nil || reply[2] != "new:5" {
		t.Errorf("%v, %v", reply, err)
	}
	for _, eval := range []*redis.Cmd{
		rdb.Eval(bg, markScript.Source(), []string{"other"}, int64(1)<<60, "empty", "abc", ""),
		rdb.Eval(bg, raiseScript.Source(), []string{"other"}, 0, "7", 60000),
	} {
		if err := eval.Err(); err == nil || !strings.Contains(err.Error(), "OOM") {
			t.Errorf("%v", err)
		}
	}
	admin.ConfigSet(bg, "maxmemory", "0")
	if err := admin.ACLSetUser(bg, "default", "-set").Err(); err != nil {
		t.Fatal(err)
	}
	for _, eval := range []*redis.Cmd{
		rdb.Eval(bg, markScript.Source(), []string{"other"}, int64(1)<<60, "empty", "abc", ""),
		rdb.Eval(bg, raiseScript.Source(), []string{"other"}, 0, "7", 60000),
	} {
		if err := eval.Err(); err == nil {
			t.Error("written without the rights")
		}
	}
	if n := admin.Exists(bg, "other").Val(); n != 0 {
		t.Error("something was written")
	}
}

//go:embed lua
var lua embed.FS

// There are exactly two scripts, and each states its contract: its keys, its arguments, and what it
// returns.
func TestScripts_Contracts(t *testing.T) {
	files, err := fs.Glob(lua, "lua/*.lua")
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		source, err := lua.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"-- KEYS[1] ", "-- ARGV[1] not-after", "-- Returns "} {
			if !strings.Contains(string(source), part) {
				t.Errorf("%s does not say %q", file, part)
			}
		}
	}
}
