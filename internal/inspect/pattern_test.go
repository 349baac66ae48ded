// A pattern matches a name here as it matches a key in Redis.

package inspect

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

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
