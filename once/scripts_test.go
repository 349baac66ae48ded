// These tests run each script on its own, and check what it answers and what it leaves. The record may be absent,
// another's, mine, done, failed, or foreign. The script may run twice, late or without memory, or may fail midway.

package once

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/scripttest"
)

const (
	me    = "11111111-1111-8111-8111-111111111111:1"
	other = "22222222-2222-8222-8222-222222222222:2"

	record = "holdfast_once:{n:k}"
	token  = "holdfast_once_token:{n:k}"
)

// run is one run of a script.
type run struct {
	script *conn.Script
	keys   []string
	args   []any
}

var both = []string{record, token}

func ask(payload string) run { return run{askScript, both, []any{me, 10000, 60000, payload}} }

func complete(field, data string) run {
	return run{completeScript, both, []any{me, 77, field, data, 5000, 8, "PUBLISH", "c"}}
}

var (
	release = run{releaseScript, both[:1], []any{me, "PUBLISH", "c"}}
	forget  = run{forgetScript, both, []any{60000}}
	take    = run{tickScript, both, []any{me, 5000}}
	untake  = run{untickScript, both[:1], []any{me}}

	everyRun = []run{ask(""), ask("p"), complete("result", "r"), complete("error", "e"), release, forget, take, untake}
)

func (r run) on(rdb *redis.Client, notAfter string) ([]any, error) {
	return rdb.Eval(context.Background(), r.script.Source(), r.keys, append([]any{notAfter}, r.args...)...).Slice()
}

// The states of a record, as commands.
var (
	absent     = scripttest.State{}
	mine       = scripttest.State{{"HSET", record, me, 1, "token", 77}, {"PEXPIRE", record, 9000}, {"SET", token, 77, "PX", 60000}}
	minePaid   = append(slices.Clone(mine), []any{"HSET", record, "payload", "p"})
	others     = scripttest.State{{"HSET", record, other, 1, "token", 88, "payload", "q"}, {"PEXPIRE", record, 9000}}
	anew       = scripttest.State{{"HSET", record, me, 1, "token", 99}, {"PEXPIRE", record, 9000}} // by a late request
	complete1  = scripttest.State{{"HSET", record, "by", me, "token", 77, "payload", "p", "result", "old"}, {"PEXPIRE", record, 9000}}
	otherDone  = scripttest.State{{"HSET", record, "by", other, "token", 88, "result", "theirs"}, {"PEXPIRE", record, 9000}}
	broken     = scripttest.State{{"HSET", record, "by", me, "token", 77, "error", "bad"}, {"PEXPIRE", record, 9000}}
	halfway    = scripttest.State{{"HSET", record, "by", me, me, 1, "token", 77, "result", "r"}, {"PEXPIRE", record, 9000}}
	endless    = scripttest.State{{"HSET", record, other, 1, "token", 88}}
	foreign    = scripttest.State{{"SADD", record, "x"}}
	ticked     = scripttest.State{{"SET", record, me, "PX", 9000}}
	othersTick = scripttest.State{{"SET", record, other, "PX", 9000}}
)

// fields returns the record as text, without a token that is a time.
func fields(t testing.TB, rdb *redis.Client) string {
	t.Helper()
	if kind := rdb.Type(context.Background(), record).Val(); kind != "hash" {
		return strings.ReplaceAll(kind, "none", "")
	}
	words := strings.Fields(scripttest.Hash(t, rdb, record))
	for i, word := range words {
		if strings.HasPrefix(word, "token=") && len(word) > len("token=999") {
			words[i] = "token=new"
		}
	}
	return strings.NewReplacer(me, "me", other, "other").Replace(strings.Join(words, " "))
}

const same = "same"

func TestScripts(t *testing.T) {
	for _, tc := range []struct {
		what  string
		run   run
		state scripttest.State
		reply string
		after string // the record: "", same, or its fields
		ttl   int64  // of the record
		again string // the reply of a second run; "": the same
	}{
		{"absent", ask(""), absent, "1 10000 new", "me=1 token=new", 10000, ""},
		{"absent, with a payload", ask("p"), absent, "1 10000 new", "me=1 payload=p token=new", 10000, ""},
		{"mine", ask(""), mine, "1 10000 77", same, 10000, ""},
		{"mine, with a payload", ask("p"), minePaid, "1 10000 77", same, 10000, ""},
		{"another's", ask(""), others, "0 9000 88 0", same, 9000, ""},
		{"another's, of the same payload", ask("q"), others, "0 9000 88 0", same, 9000, ""},
		{"another's, of another payload", ask("p"), others, "0 9000 88 3", same, 9000, ""},
		{"another's, without an end", ask(""), endless, "0 -1 88 0", same, -1, ""},
		{"another's, without a payload", ask("p"), endless, "0 -1 88 0", same, -1, ""},
		{"done", ask(""), complete1, "0 9000 77 1 old", same, 9000, ""},
		{"done, of the same payload", ask("p"), complete1, "0 9000 77 1 old", same, 9000, ""},
		{"done, of another payload", ask("q"), complete1, "0 9000 77 3", same, 9000, ""},
		{"failed", ask(""), broken, "0 9000 77 2 bad", same, 9000, ""},
		{"done, but for its last write", ask(""), halfway, "0 9000 77 1 r", same, 9000, ""},

		{"absent", complete("result", "r"), absent, "0", "", -2, ""},
		{"mine", complete("result", "r"), mine, "1", "by=me result=r token=77", 5000, ""},
		{"mine, with a payload", complete("result", "r"), minePaid, "1", "by=me payload=p result=r token=77", 5000, ""},
		{"mine, failed", complete("error", "e"), mine, "1", "by=me error=e token=77", 5000, ""},
		{"another's", complete("result", "r"), others, "0", same, 9000, ""},
		{"another's result", complete("result", "r"), otherDone, "0", same, 9000, ""},
		{"my result", complete("result", "r"), complete1, "1", same, 9000, ""},
		{"granted anew by a late request", complete("result", "r"), anew, "0", "", -2, ""},
		{"failed in the middle", complete("result", "r"), halfway, "1", "by=me result=r token=77", 5000, ""},

		{"absent", release, absent, "0", "", -2, ""},
		{"mine", release, mine, "1", "", -2, "0"},
		{"another's", release, others, "0", same, 9000, ""},
		{"done", release, complete1, "0", same, 9000, ""},
		{"done, but for its last write", release, halfway, "0", same, 9000, ""},

		{"absent", forget, absent, "1", "", -2, ""},
		{"mine", forget, mine, "0", same, 9000, ""},
		{"another's", forget, others, "0", same, 9000, ""},
		{"done", forget, complete1, "1", "", -2, ""},
		{"failed", forget, broken, "1", "", -2, ""},

		{"absent", take, absent, "1", "string", 5000, ""},
		{"mine", take, ticked, "1", same, 9000, ""},
		{"another's", take, othersTick, "0", same, 9000, ""},
		{"paused", take, [][]any{{"SET", both[1], "id\n1\n2\nby\nwhy", "PX", 9000}}, "0 id\n1\n2\nby\nwhy", "", -2, ""},
		{"paused, and mine", take, [][]any{ticked[0], {"SET", both[1], "id\n1\n2\nby\nwhy", "PX", 9000}}, "1", same, 9000, ""},
		{"resumed", take, [][]any{{"SET", both[1], "-id\n1\n2\nby\nwhy", "PX", 9000}}, "1", "string", 5000, ""},
		{"absent", untake, absent, "0", "", -2, ""},
		{"mine", untake, ticked, "1", "", -2, "0"},
		{"another's", untake, othersTick, "0", same, 9000, ""},
	} {
		t.Run(tc.run.script.Name()+"/"+tc.what, func(t *testing.T) {
			scripttest.OnMini(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client) {
				tc.state.Put(t, rdb)
				if tc.after == same {
					tc.after = fields(t, rdb)
				}
				send := func() string { return scripttest.TextAnew(tc.run.on(rdb, scripttest.Never)) }
				left := func() string { return fmt.Sprint(fields(t, rdb), " for ", rdb.Do(t.Context(), "PTTL", record).Val()) }
				want := fmt.Sprint(tc.after, " for ", tc.ttl)
				scripttest.Twice(t, tc.what, tc.reply, tc.again, want, send, left)
				fails := func() error { _, err := tc.run.on(rdb, scripttest.Never); return err }
				scripttest.Mended(t, mini, func() { tc.state.Put(t, rdb) }, fails, left, want)
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
		for _, r := range []run{ask(""), ask("p"), forget, take} {
			for _, state := range []scripttest.State{absent, mine, others, complete1, foreign} {
				state.Put(t, rdb)
				check(r, "1", "[-1 ")
			}
		}
		for _, r := range everyRun {
			foreign.Put(t, rdb)
			check(r, scripttest.Never, "WRONGTYPE")
		}
	})
}

// Without memory nothing is granted, but what was done is written, given up and forgotten.
func TestScriptsWithoutMemory(t *testing.T) {
	server := redistest.Server(t)
	rdb, admin := server.Client(t), server.Admin()
	for _, tc := range []struct {
		what  string
		run   run
		state scripttest.State
		reply string // its end
	}{
		{"ask", ask(""), absent, "OOM"},
		{"ask, mine", ask(""), mine, "1 10000 77"},
		{"ask, done", ask(""), complete1, " 77 1 old"}, // its life has run a little
		{"complete", complete("result", strings.Repeat("r", 9)), mine, "1"},
		{"release", release, mine, "1"},
		{"forget", forget, complete1, "1"},
		{"tick", take, absent, "OOM"},
		{"untick", untake, ticked, "1"},
	} {
		tc.state.Put(t, rdb)
		redistest.Must(t, admin.ConfigSet(t.Context(), "maxmemory", "1").Err())
		got := scripttest.TextAnew(tc.run.on(rdb, scripttest.Never))
		admin.ConfigSet(t.Context(), "maxmemory", "0")
		if !strings.HasSuffix(got, tc.reply) {
			t.Errorf("%s: %q, want %q", tc.what, got, tc.reply)
		}
	}
}

// The token of a key grows from work to work: after work that was given up, after a result that was
// kept long or short, and after one that was forgotten, though the server's clock is set back.
func TestTokensOfAKeyGrow(t *testing.T) {
	scripttest.OnMini(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client) {
		last := int64(0)
		does := func(r run) []any {
			t.Helper()
			reply, err := r.on(rdb, scripttest.Never)
			if err != nil || reply[0] != int64(1) {
				t.Fatalf("%s: %v, %v", r.script.Name(), reply, err)
			}
			return reply
		}
		granted := func(what string) {
			t.Helper()
			now := does(ask(""))[3].(int64)
			if now <= last {
				t.Errorf("%s: token %d after %d", what, now, last)
			}
			last = now
		}
		finish := func(keys []string) {
			t.Helper()
			c := complete("result", "r")
			c.keys, c.args[1] = keys, last
			does(c)
		}
		stays := func() {
			t.Helper()
			if life := rdb.PTTL(t.Context(), token).Val(); life <= time.Hour {
				t.Errorf("the token is an hour ahead of the clock, and lives for %v", life)
			}
		}
		start := time.Now()
		mini.SetTime(start)
		granted("first")
		finish(both)
		if rdb.Exists(t.Context(), token).Val() != 0 {
			t.Error("the token has a key of its own beside a result that lasts longer")
		}
		does(forget)
		mini.SetTime(start.Add(-time.Second))
		granted("after a result that was forgotten")
		mini.SetTime(start.Add(-time.Hour))
		does(release)
		granted("after work that was given up")
		finish(both[:1])
		rdb.Del(t.Context(), record)
		granted("after a result that was kept short")
		finish(both)
		stays()
		does(forget)
		stays()
		granted("after a result that was forgotten though its token was ahead of the clock")
	})
}

// The message has the result if that is small, and only the token otherwise.
func TestTheMessageOfAResult(t *testing.T) {
	scripttest.OnMini(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client) {
		sub := rdb.Subscribe(t.Context(), "c")
		defer sub.Close()
		redistest.Must(t, redistest.Err(sub.Receive(t.Context())))
		for _, tc := range []struct {
			run   run
			state scripttest.State
			want  string
		}{
			{complete("result", "a b\r\n\x00"), mine, "77 result a b\r\n\x00"},
			{complete("result", ""), mine, "77 result "},
			{complete("result", "12345678"), mine, "77 result 12345678"},
			{complete("result", "123456789"), mine, "77"},
			{complete("error", "bad"), mine, "77 error bad"},
			{complete("result", "r"), anew, "0"},
			{release, mine, "0"},
		} {
			tc.state.Put(t, rdb)
			redistest.Must(t, redistest.Err(tc.run.on(rdb, scripttest.Never)))
			m, err := sub.ReceiveMessage(t.Context())
			if err != nil || m.Payload != tc.want {
				t.Errorf("%s: %v, %v, want %q", tc.run.script.Name(), m, err, tc.want)
			}
		}
	})
}

func TestMain(m *testing.M) { redistest.Main(m) }
