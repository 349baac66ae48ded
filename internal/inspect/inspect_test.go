// A token may tell since when a lock is held, an inspection looks at some names only, and a pattern matches a name
// here as it matches a key in Redis.

package inspect

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestSince(t *testing.T) {
	now := time.UnixMicro(1_700_000_000_000_000)
	const life = 7 * 24 * time.Hour
	for _, tc := range []struct {
		what    string
		token   int64         // the token's age in ms
		left    time.Duration // the time that its key has left
		isKnown bool
	}{
		{"written with its expiry", 5000, life - 5*time.Second, true},
		{"just now", 0, life, true},
		{"without expiry", 5000, -1, true},
		{"ahead of the clock", -5000, life, false},
		{"ahead, without expiry", -5000, -1, false},
		{"its end put off half an hour before", 5000, life - 30*time.Minute, true},
		{"its end put off too long before", 5000, life - 90*time.Minute, false},
		{"last and one, after the clock was set back", 5000, life + 2*time.Hour - 15*time.Second, false},
		{"another server's", 5000, life - 2*time.Second, false},
		{"another program's expiry", 5000, time.Minute, false},
	} {
		given := now.Add(-time.Duration(tc.token) * time.Millisecond)
		ttl := tc.left.Milliseconds()
		if tc.left < 0 {
			ttl = -1
		}
		got := since(now, fmt.Sprint(given.UnixMicro()), ttl, life)
		if got.IsZero() == tc.isKnown || tc.isKnown && !got.Equal(given) {
			t.Errorf("%s: %v, want known %v", tc.what, got, tc.isKnown)
		}
	}
	// The last one is how a counter of Redisson's fenced lock would look under a hold of Holdfast.
	for token, ttl := range map[string]int64{"": -1, "0": -1, "-1": -1, "x": -1, "1e16": -1, "17": life.Milliseconds()} {
		if got := since(now, token, ttl, life); !got.IsZero() {
			t.Errorf("token %q: %v", token, got)
		}
	}
}

func TestCandidates(t *testing.T) {
	for name, want := range map[string]bool{
		"orders:42":               true,
		"{user}:x":                true,
		"a}b":                     true,
		"x:rwlock_timeout:y":      true,
		"redisson_lock_token:{x}": false,
		"holdfast_calls:{x}:y":    false,
		"{x}:ac9cf787-2d1c-4486-8727-ea2f2f26e3ba:5:rwlock_timeout:1": false,
		"": false,
	} {
		if candidate("", name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

func TestAPatternMatchesAsInRedis(t *testing.T) {
	server := redistest.Server(t)
	rdb := server.Client(t)
	texts := []string{"orders:42", "orders:4", "o", "[x]", "a*b", "a\\b", "aXbXc", "x-y", "日本", "aaaaaaaaaaaaaaaaaaaaaaaaab", "]x", "-x", "[]a", "a[", "aabbcc", "\xff\x00", "^"}
	patterns := []string{"*", "orders:*", "orders:?", "orders:??", "o", "", "[a-o]*", "[^a-o]*", "[x]", "\\[x]", "a\\*b", "a*b", "a*b*c",
		"a[X-]b*", "x[-y]y", "[z-a]*", "*a*a*a*b", "[", "o[", "x\\", "*本", "a\\\\b", "[\\]]x", "orders:[4", "[a-",
		"**a**", "[]a", "[^]", "[a\\-c]x", "[a-]x", "a[\\", "*[ab]*[bc]", "\xff*"}
	for _, text := range texts {
		redistest.Must(t, rdb.FlushAll(t.Context()).Err())
		rdb.Set(t.Context(), text, 1, 0)
		for _, pattern := range patterns {
			found, err := rdb.Keys(t.Context(), pattern).Result()
			if got := Matches(pattern, text); err != nil || got != (len(found) == 1) {
				t.Errorf("%q matches %q: %v; Redis finds %q, %v", pattern, text, got, found, err)
			}
		}
	}
}

func TestSingle(t *testing.T) {
	for pattern, want := range map[string]string{
		"": "-", "*": "-", "orders:*": "-", "a?": "-", "[ab]": "-", `a\`: "-", `\\*`: "-",
		"orders:42": "orders:42", `a\*b`: "a*b", `\[x]`: "[x]", `a\\b`: `a\b`, "{user7}:cart": "{user7}:cart",
	} {
		name, single := Single(pattern)
		if !single {
			name = "-"
		}
		redistest.Equal(t, name, want, "%q, want %q (%q)", want, pattern)
	}
}
