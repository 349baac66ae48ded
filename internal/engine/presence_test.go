// These tests show what a Client says of itself, in each state of its key, and when it says it.

package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

const saidKey = "holdfast_client:{holdfast}:some"

// Each script of a Client's own key, in each state of that key, run twice. Whichever command fails inside it, the key is
// not left without an expiry.
func TestPresenceScripts(t *testing.T) {
	write := func(version int, notes ...any) []any { return append([]any{3600_000, version, "pod"}, notes...) }
	const tombstone = "9007199254740991"
	for _, tc := range []struct {
		what   string
		before []any         // of the hash
		write  []any         // the arguments of presentScript; nil: absentScript
		late   time.Duration // when the write may come at the latest; 0: none may
		status int64
		after  string
	}{
		{"nothing is there", nil, write(1, "7", "note"), time.Second, conn.Done, "map[7:note version:1 who:pod]"},
		{"an earlier one, with a note", []any{"version", 1, "who", "old", "7", "x"}, write(2, "8", "y"), time.Second, conn.Done, "map[8:y version:2 who:pod]"},
		{"the same one", []any{"version", 2, "who", "pod"}, write(2), time.Second, conn.Done, "map[version:2 who:pod]"},
		{"a later one", []any{"version", 3, "who", "later"}, write(2), time.Second, conn.Done, "map[version:3 who:later]"},
		{"it comes late", []any{"version", 1, "who", "old"}, write(2), -time.Second, conn.Late, "map[version:1 who:old]"},
		{"it is removed, and a write comes", []any{"version", tombstone}, write(3), time.Second, conn.Done, "map[version:" + tombstone + "]"},
		{"it is removed", []any{"version", 3, "who", "pod"}, nil, 0, conn.Done, "map[]"},
		{"it is not there", nil, nil, 0, conn.Done, "map[]"},
		{"it is removed, and a write may come", []any{"version", 3, "who", "pod"}, nil, time.Second, conn.Done, "map[version:" + tombstone + "]"},
		{"it is not there, and a write may come", nil, nil, time.Second, conn.Done, "map[version:" + tombstone + "]"},
		{"it is removed, and a write could have come", []any{"version", 3, "who", "pod"}, nil, -time.Second, conn.Done, "map[]"},
	} {
		inBubble(t, func(t *testing.T, _ *Engine, s *redistest.MiniServer) {
			ctx, rdb, now := t.Context(), s.Client(), time.Now()
			given := func() {
				rdb.Del(ctx, saidKey)
				if tc.before != nil {
					rdb.HSet(ctx, saidKey, tc.before...)
					rdb.PExpire(ctx, saidKey, time.Minute)
				}
			}
			script, late := absentScript, int64(0)
			if tc.late != 0 {
				late = now.Add(tc.late).UnixMicro()
			}
			args := []any{now.Add(-time.Hour).UnixMicro(), late}
			if tc.write != nil {
				script, args = presentScript, append([]any{late}, tc.write...)
			}
			send := func() ([]int64, error) {
				return rdb.Eval(ctx, script.Source(), []string{saidKey}, args...).Int64Slice()
			}
			given()
			for range 2 {
				reply, err := send()
				if err != nil || reply[0] != tc.status {
					t.Errorf("%s: %v, %v, want %d", tc.what, reply, err, tc.status)
				}
			}
			got, ttl := rdb.HGetAll(ctx, saidKey).Val(), rdb.PTTL(ctx, saidKey).Val()
			if fmt.Sprint(got) != tc.after {
				t.Errorf("%s: %v, want %s", tc.what, got, tc.after)
			}
			least, most := time.Duration(0), time.Hour
			switch {
			case got["who"] == "pod":
				least = time.Hour - 1
			case script == absentScript:
				least, most = time.Second, time.Second+2*time.Millisecond
			}
			if len(got) > 0 && (ttl <= least || ttl > most) {
				t.Errorf("%s: %v left", tc.what, ttl)
			}
			for k, fired := 1, true; fired; k++ {
				given()
				disarm := s.FailInside(k)
				_, err := send()
				if fired = disarm(); fired && err == nil {
					t.Errorf("%s: command %d fails, and the script does not say so", tc.what, k)
				}
				if rdb.PTTL(ctx, saidKey).Val() == -1 {
					t.Errorf("%s: command %d fails: the key stands without an expiry", tc.what, k)
				}
			}
		})
	}
}

// said returns what the Engine says of itself.
func said(t *testing.T, e *Engine, s *redistest.MiniServer) map[string]string {
	t.Helper()
	return s.Client().HGetAll(t.Context(), keys.Space("").ForClient(e.Client())).Val()
}

// wantWho fails t unless the Engine says that it is who; "": unless it says nothing.
func wantWho(t *testing.T, e *Engine, s *redistest.MiniServer, when, who string) {
	t.Helper()
	if got := said(t, e, s); got["who"] != who || who == "" && len(got) > 0 {
		t.Errorf("%s it says %v, want %q", when, got, who)
	}
}

// wantIdle fails t unless the Engine is off the wheel.
func wantIdle(t *testing.T, e *Engine) {
	t.Helper()
	if e.presence.use.Load() != idle {
		t.Error("an idle Client stays on the wheel")
	}
}

// talking is inBubble with an Engine that says who it is.
func talking(t *testing.T, test func(t *testing.T, e *Engine, s *redistest.MiniServer)) {
	t.Helper()
	inBubble(t, func(t *testing.T, e *Engine, s *redistest.MiniServer) {
		e.SayWho("pod")
		test(t, e, s)
	})
}

func TestPresenceIsWrittenWhenTheClientIsUsed(t *testing.T) {
	talking(t, func(t *testing.T, e *Engine, s *redistest.MiniServer) {
		time.Sleep(time.Hour)
		wantWho(t, e, s, "before the first use", "")
		e.Present()
		time.Sleep(time.Second)
		wantWho(t, e, s, "when it is used", "pod")
		time.Sleep(3 * time.Minute)
		wantIdle(t, e)
		time.Sleep(time.Hour)
		wantWho(t, e, s, "an hour after its last use", "")
		e.Present()
		time.Sleep(time.Second)
		wantWho(t, e, s, "used again,", "pod")
		for range 5 {
			s.FlushAll()
			e.Present()
			time.Sleep(time.Minute + time.Second)
			wantWho(t, e, s, "a minute after the server lost its data", "pod")
		}
	})
}

func TestNotesComeAndGo(t *testing.T) {
	talking(t, func(t *testing.T, e *Engine, s *redistest.MiniServer) {
		e.Present()
		a, b := new(int), new(string)
		for _, step := range []struct {
			owner int64
			by    any
			text  string
			want  string
		}{
			{1, a, "one", "map[1:one version:2 who:pod]"},
			{1, b, "", "map[1:one version:2 who:pod]"}, // another lease takes back its own
			{1, b, "two", "map[1:two version:3 who:pod]"},
			{1, a, "", "map[1:two version:3 who:pod]"},
			{2, a, "three", "map[1:two 2:three version:4 who:pod]"},
			{1, b, "", "map[2:three version:5 who:pod]"},
			{2, a, "", "map[version:6 who:pod]"},
		} {
			e.Note(step.owner, step.by, step.text)
			time.Sleep(time.Second)
			redistest.Equal(t, fmt.Sprint(said(t, e, s)), step.want, "%s, want %s (after %q)", step.want, step.text)
		}
		// A note that is taken back long after the last use does not keep an idle Client on the wheel.
		e.Note(1, a, "long work")
		time.Sleep(10 * time.Minute)
		e.Note(1, a, "")
		time.Sleep(3 * time.Minute)
		wantIdle(t, e)
		before := s.CommandCount()
		time.Sleep(10 * time.Minute)
		redistest.Equal(t, s.CommandCount()-before, 0, "an idle Client sends %d commands")
	})
}

// However often notes change, and however many there are, few and small requests tell of them.
func TestNotesCostFewRequests(t *testing.T) {
	talking(t, func(t *testing.T, e *Engine, s *redistest.MiniServer) {
		e.Present()
		before := s.CommandCount()
		for i := range 1000 {
			e.Note(int64(i), e, "busy")
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		redistest.Equal(t, len(said(t, e, s))-2, maxNotes, "%d notes are shown, want %d", maxNotes)
		if n := s.CommandCount() - before; n > 100*(maxNotes+5) {
			t.Errorf("%d commands", n)
		}
	})
}

// Whatever stands in the way of what a Client says, it tries again at leisure, and the log is told once.
func TestPresenceFails(t *testing.T) {
	talking(t, func(t *testing.T, e *Engine, s *redistest.MiniServer) {
		key := keys.Space("").ForClient(e.Client())
		s.Client().RPush(t.Context(), key, "another program's")
		e.Present()
		time.Sleep(time.Minute)
		redistest.Equal(t, s.Client().Type(t.Context(), key).Val(), "list", "it has overwritten the key: %s")
		s.Client().Del(t.Context(), key)
		e.Present()
		time.Sleep(2 * presentRetry)
		wantWho(t, e, s, "when the key is free", "pod")
	})
}

// Close removes what the Client says, unless something of it stays behind. It does not wait for long for a
// server that does not remove it.
func TestCloseRemovesWhatTheClientSays(t *testing.T) {
	for _, tc := range []struct{ staysBehind, loading, remains bool }{{}, {staysBehind: true, remains: true}, {loading: true, remains: true}} {
		talking(t, func(t *testing.T, e *Engine, s *redistest.MiniServer) {
			e.Present()
			time.Sleep(time.Second)
			if tc.staysBehind {
				e.StaysBehind()
			}
			if tc.loading {
				s.SetError("LOADING Redis is loading the dataset in memory")
			}
			begun := time.Now()
			e.Close()
			if took := time.Since(begun); took > absentGrace+100*time.Millisecond {
				t.Errorf("%+v: Close took %v", tc, took)
			}
			s.SetError("")
			if got := said(t, e, s); (len(got) > 0) != tc.remains {
				t.Errorf("%+v: after Close it says %v", tc, got)
			}
		})
	}
}

func TestWithoutAnIdentityNothingIsSent(t *testing.T) {
	inBubble(t, func(t *testing.T, e *Engine, s *redistest.MiniServer) {
		e.Present()
		e.Note(1, e, "x")
		e.StaysBehind()
		time.Sleep(time.Minute)
		redistest.Equal(t, s.CommandCount(), 0, "%d commands")
	})
}

func TestCut(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "pod": "pod", "\xff": "", strings.Repeat("x", 300): strings.Repeat("x", MaxSaid),
		strings.Repeat("x", MaxSaid-1) + "日": strings.Repeat("x", MaxSaid-1),
	} {
		if got := Cut(text); got != want || !utf8.ValidString(got) {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// Nobody can find out a Client's id from its key.
func TestTheKeyOfAClientDoesNotTellItsID(t *testing.T) {
	id := newClient()
	key := keys.Space("").ForClient(id)
	for i := 0; i+4 <= len(id); i++ {
		if part := id[i : i+4]; !strings.Contains(part, "-") && strings.Count(key, part) > 1 {
			t.Errorf("%s tells %s", key, part)
		}
	}
	if strings.Contains(key, id[:8]) || key == keys.Space("").ForClient(newClient()) || key != keys.Space("").ForClient(id) {
		t.Error(key)
	}
}
