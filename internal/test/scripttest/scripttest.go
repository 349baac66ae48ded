// Package scripttest runs scripts alone, as a server sees them: one sending at a time, each with its not-after. Only
// tests import it.
package scripttest

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Never is a not-after that never comes.
const Never = "9000000000000000"

// OnMini runs a test in virtual time, on an embedded server.
func OnMini(t *testing.T, test func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client)) {
	t.Helper()
	redistest.Bubble(t, func(t *testing.T) {
		mini := redistest.Mini(t)
		test(t, mini, mini.Client())
	})
}

// OnServers runs a test on an embedded server and on a real one.
func OnServers(t *testing.T, test func(t *testing.T, rdb *redis.Client)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) { test(t, redistest.Mini(t).Client()) })
	t.Run("real", func(t *testing.T) { test(t, redistest.Server(t).Client(t)) })
}

// State is what a test begins with, as commands.
type State [][]any

// Texts returns a state from commands in words. In a word, ~ stands for a space.
func Texts(commands ...string) State {
	var all State
	for _, c := range commands {
		var words []any
		for _, w := range strings.Fields(c) {
			words = append(words, strings.ReplaceAll(w, "~", " "))
		}
		all = append(all, words)
	}
	return all
}

// Put empties the server and makes the state.
func (s State) Put(t testing.TB, rdb redis.UniversalClient) {
	t.Helper()
	rdb.FlushAll(context.Background())
	for _, command := range s {
		if err := rdb.Do(context.Background(), command...).Err(); err != nil {
			t.Fatalf("%v: %v", command, err)
		}
	}
}

// Now returns the server's clock in microseconds.
func Now(t testing.TB, rdb redis.UniversalClient) int64 {
	t.Helper()
	at, err := rdb.Time(context.Background()).Result()
	redistest.Must(t, err)
	return at.UnixMicro()
}

// Send runs a script whose not-after is in left.
func Send(t testing.TB, rdb redis.UniversalClient, left time.Duration, source string, keys []string, args ...any) ([]any, error) {
	t.Helper()
	argv := append([]any{Now(t, rdb) + left.Microseconds()}, args...)
	return rdb.Eval(context.Background(), source, keys, argv...).Slice()
}

// Text returns a reply without the server's clock, or the kind of the error.
func Text(reply []any, err error) string {
	if err != nil {
		return Code(err)
	}
	words := []string{fmt.Sprint(reply[0])}
	for _, v := range reply[2:] {
		words = append(words, fmt.Sprint(v))
	}
	return strings.Join(words, " ")
}

// TextAnew is Text, but a number that was made of the server's clock is "new".
func TextAnew(reply []any, err error) string {
	reply = slices.Clone(reply)
	for i, v := range reply {
		if number, ok := v.(int64); ok && number > 1_000_000_000_000 {
			reply[i] = "new"
		}
	}
	return Text(reply, err)
}

// Code returns the kind of error that a script answered with.
func Code(err error) string {
	for _, code := range []string{"WRONGTYPE", "NOPERMITS", "OOM", "injected", "NOPERM", "can't run this command"} {
		if strings.Contains(err.Error(), code) {
			return code
		}
	}
	return err.Error()
}

// Hash returns the fields of a hash as text, sorted.
func Hash(t testing.TB, rdb redis.UniversalClient, key string) string {
	t.Helper()
	var fields []string
	for field, value := range rdb.HGetAll(context.Background(), key).Val() {
		fields = append(fields, field+"="+value)
	}
	slices.Sort(fields)
	return strings.Join(fields, " ")
}

// Ends fails the test for each of the keys that has no expiry; without keys, for any key of the server.
func Ends(t testing.TB, rdb redis.UniversalClient, keys ...string) {
	t.Helper()
	if len(keys) == 0 {
		keys = rdb.Keys(context.Background(), "*").Val()
	}
	for _, key := range keys {
		if rdb.PTTL(context.Background(), key).Val() == -1 {
			t.Errorf("%s has no expiry", key)
		}
	}
}

// Twice sends a request twice, as if its first reply were lost. Both times send returns the reply that is wanted, and
// left what is left; to the second sending the reply is again, unless that is "".
func Twice(t testing.TB, what, reply, again, after string, send, left func() string) {
	t.Helper()
	for n, want := range []string{reply, cmp.Or(again, reply)} {
		redistest.Equal(t, send(), want, "reply %q, want %q (%s, sending %d)", want, what, n+1)
		if got := left(); got != after {
			t.Errorf("%s, sending %d leaves\n     %q\nwant %q", what, n+1, got, after)
		}
	}
}

// Unchanged sends a request of which the answer has to contain want, and which must change nothing.
func Unchanged(t testing.TB, mini *redistest.MiniServer, what, want string, send func() ([]any, error)) {
	t.Helper()
	before := mini.Snapshot()
	reply, err := send()
	if got := fmt.Sprint(reply, err); !strings.Contains(got, want) || mini.Snapshot() != before {
		t.Errorf("%s: %s, want %s, after it\n%s\nwas\n%s", what, got, want, mini.Snapshot(), before)
	}
}

// Failures sends a request in the same state again and again; of the first sending the first command fails, of the
// next the second, and of the last none. It yields which, and what send returned.
func Failures(mini *redistest.MiniServer, given func(), send func() error) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for k, fired := 1, true; fired; k++ {
			given()
			disarm := mini.FailInside(k)
			err := send()
			if fired = disarm(); !yield(k, err) {
				return
			}
		}
	}
}

// AllOrNothing sends a request in the same state again and again, and each time another command of it fails. If it says
// so, nothing is changed. Otherwise everything is done.
func AllOrNothing(t testing.TB, mini *redistest.MiniServer, what string, given func(), send func() error, state func() string) {
	t.Helper()
	given()
	before := state()
	redistest.Must(t, send())
	after := state()
	for k, err := range Failures(mini, given, send) {
		want := after
		if err != nil {
			want = before
		}
		redistest.Equal(t, state(), want, "%q is left, want %q (%s, command %d fails: %v)", want, what, k, err)
	}
}

// Mended sends a request in the same state again and again, and each time another command of it fails. Then no key is
// without an expiry, unless one is before or in the end, and the next sending is answered as usual,
// and leaves what is wanted, unless left is nil.
func Mended(t testing.TB, mini *redistest.MiniServer, given func(), send func() error, left func() string, want string) {
	t.Helper()
	endless := func() bool {
		return slices.ContainsFunc(mini.Keys(), func(key string) bool { return mini.TTL(key) == 0 })
	}
	given()
	lasts := endless()
	usual := send()
	lasts = lasts || endless()
	for k, err := range Failures(mini, given, send) {
		if !lasts && endless() {
			t.Errorf("command %d fails (%v): a key has no expiry:\n%s", k, err, mini.Snapshot())
		}
		if err = send(); (err == nil) != (usual == nil) {
			t.Errorf("command %d failed, and the next run: %v", k, err)
		}
		if left != nil && left() != want {
			t.Errorf("command %d failed, and the next run leaves\n     %q\nwant %q", k, left(), want)
		}
	}
}

// Row is one state in the table of a script. The first argument is "now+1" or "now-1" for a not-after; one that is not
// a text stays as it is.
type Row = struct {
	What         string
	Before       Putter
	Args         []any
	Reply, After string
	Again        string // the reply to a second sending; "": the same
}

// Putter is a state that can be put to an empty server.
type Putter interface {
	Put(t testing.TB, rdb redis.UniversalClient)
}

// Table has what its rows share.
type Table struct {
	Source string // of the script
	Keys   []string
	Word   func(i int, v any) string                    // an element of a reply
	Left   func(t testing.TB, rdb *redis.Client) string // what the server has
	Mends  func(t testing.TB, rdb *redis.Client) string // what is left once a run has mended one that failed; nil: anything
}

// Kept is After in a row that changes nothing.
const Kept = "the same as before"

// Run runs the script of each row twice, and with each of its commands failing.
func (tb Table) Run(t *testing.T, rows []Row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.What, func(t *testing.T) {
			OnMini(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client) {
				tb.Twice(t, rdb, r)
				given := func() { put(t, rdb, r) }
				send := func() error { return redistest.Err(tb.send(t, rdb, r.Args)) }
				if tb.Mends == nil {
					Mended(t, mini, given, send, nil, "")
					return
				}
				left := func() string { return tb.Mends(t, rdb) }
				Mended(t, mini, given, send, left, left())
			})
		})
	}
}

// Twice runs the script of a row twice.
func (tb Table) Twice(t testing.TB, rdb *redis.Client, r Row) {
	t.Helper()
	put(t, rdb, r)
	left := func() string { return tb.Left(t, rdb) }
	if r.After == Kept {
		r.After = left()
	}
	Twice(t, r.What, r.Reply, r.Again, r.After, func() string { return tb.words(tb.send(t, rdb, r.Args)) }, left)
}

// words shows a reply as fmt.Sprint does, or the kind of the error.
func (tb Table) words(reply any, err error) string {
	if err != nil {
		return Code(err)
	}
	values, many := reply.([]any)
	if !many {
		return tb.Word(0, reply)
	}
	var words []string
	for i, v := range values {
		words = append(words, tb.Word(i, v))
	}
	return fmt.Sprint(words)
}

func put(t testing.TB, rdb *redis.Client, r Row) {
	rdb.FlushAll(context.Background())
	r.Before.Put(t, rdb)
}

func (tb Table) send(t testing.TB, rdb *redis.Client, args []any) (any, error) {
	return rdb.Eval(context.Background(), tb.Source, tb.Keys, At(t, rdb, args)...).Result()
}

// At returns arguments with a time as the first of them: "now+1" is in a minute, and "now-1" has just gone.
func At(t testing.TB, rdb *redis.Client, args []any) []any {
	args = slices.Clone(args)
	switch args[0] {
	case "now+1":
		args[0] = Now(t, rdb) + time.Minute.Microseconds()
	case "now-1":
		args[0] = Now(t, rdb) - 1
	}
	return args
}
