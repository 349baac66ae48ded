// Each script of a pause, in each state: what it answers and leaves, also when it runs twice, and when a command inside it fails.

package pause

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/scripttest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const key = "holdfast_pause:{x}"

// TestScripts catches a pause that begins anew after its end, one whose undoing forgets the pause before it, a resume that ends
// another pause than it has seen, and a key without an expiry.
func TestScripts(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		mini := redistest.Mini(t)
		rdb := mini.Client(func(o *redis.Options) { o.MaxRetries = -1 })
		ms := func(d time.Duration) int64 { return time.Now().Add(d).UnixMilli() }
		lines := func(id string, until time.Duration) string { return fmt.Sprintf("%s\n5\n%d\nme\nwhy", id, ms(until)) }
		begin := []any{time.Now().Add(time.Hour).UnixMicro(), "two", ms(time.Minute), "me", "why"}
		late := []any{time.Now().Add(-time.Hour).UnixMicro(), "two", ms(time.Minute), "me", "why"}
		over := []any{time.Now().Add(time.Hour).UnixMicro(), "two", ms(0), "me", "why"}
		undo, end := []any{0, "two", 20_000, "1"}, []any{0, "two", 20_000, "0"}
		for what, tc := range map[string]struct {
			source string
			args   []any
			before string
			reply  string
			after  string // the ids of the pauses
		}{
			"begin, absent":                 {beginScript.Source(), begin, "", "1", "two"},
			"begin, of mine":                {beginScript.Source(), begin, lines("two", time.Minute), "1", "two"},
			"begin, of another":             {beginScript.Source(), begin, lines("one", time.Hour), "1", "two one"},
			"begin, of two others":          {beginScript.Source(), begin, lines("one", time.Hour) + "\n" + lines("nil", time.Hour), "1", "two one"},
			"begin, mine was replaced":      {beginScript.Source(), begin, lines("six", time.Hour) + "\n" + lines("two", time.Minute), "1", "six two"},
			"begin, mine has ended":         {beginScript.Source(), begin, "-" + lines("two", time.Minute), "1", "-two"},
			"begin, another has ended":      {beginScript.Source(), begin, "-" + lines("one", time.Minute), "1", "two"},
			"begin, late":                   {beginScript.Source(), late, "", "-1", ""},
			"begin, its end is over":        {beginScript.Source(), over, lines("one", time.Hour), "0", "one"},
			"resume, absent":                {finishScript.Source(), end, "", "0", ""},
			"resume, of mine":               {finishScript.Source(), end, lines("two", time.Minute), "1", "-two"},
			"resume, of another":            {finishScript.Source(), end, lines("one", time.Minute), "0", "one"},
			"resume, one before it":         {finishScript.Source(), end, lines("two", time.Minute) + "\n" + lines("one", time.Hour), "1", "-two one"},
			"undo, one before it":           {finishScript.Source(), undo, lines("two", time.Minute) + "\n" + lines("one", time.Hour), "1", "one"},
			"undo, one before it that ends": {finishScript.Source(), undo, lines("two", time.Minute) + "\n" + lines("one", 0), "1", "-two one"},
			"undo, it was replaced":         {finishScript.Source(), undo, lines("six", time.Hour) + "\n" + lines("two", time.Minute), "1", "six"},
			"undo, of mine":                 {finishScript.Source(), undo, lines("two", time.Minute), "1", "-two"},
			"look, of mine":                 {lookScript.Source(), []any{0}, lines("two", time.Minute), "1", "two"},
			"look, it has ended":            {lookScript.Source(), []any{0}, "-" + lines("two", time.Minute), "0", "-two"},
		} {
			given := func() {
				rdb.FlushAll(t.Context())
				if tc.before != "" {
					rdb.Set(t.Context(), key, tc.before, time.Hour)
				}
			}
			given()
			for run := range 2 {
				reply, err := rdb.Eval(t.Context(), tc.source, []string{key}, tc.args...).Slice()
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if got := fmt.Sprint(reply[0]); got != tc.reply && (run == 0 || got != "0") {
					t.Errorf("%s: run %d: %s, want %s", what, run, got, tc.reply)
				}
				if got := left(t, rdb); got != tc.after {
					t.Errorf("%s: run %d: left %q, want %q", what, run, got, tc.after)
				}
			}
			send := func() error { return rdb.Eval(t.Context(), tc.source, []string{key}, tc.args...).Err() }
			for range scripttest.Failures(mini, given, send) {
				left(t, rdb)
			}
		}
	})
}

// left returns the ids of the pauses in the key. It fails the test if the key has no expiry.
func left(t *testing.T, rdb *redis.Client) string {
	t.Helper()
	text := rdb.Get(context.Background(), key).Val()
	if text == "" {
		return ""
	}
	if rdb.PTTL(context.Background(), key).Val() <= 0 {
		t.Errorf("%q has no expiry", text)
	}
	var ids []string
	for n, line := range strings.Split(text, "\n") {
		if n%5 == 0 {
			ids = append(ids, line)
		}
	}
	return strings.Join(ids, " ")
}
