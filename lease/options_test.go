// These tests are about options: their defaults, their order, and what they refuse.

package lease

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
)

func TestSettings(t *testing.T) {
	defaults := []Option{Renewed(time.Minute), MaxHold(time.Hour), Cohort(0, 0)}
	for _, tc := range []struct {
		what string
		got  Settings
		want Settings
	}{
		{"nothing said", NewSettings(), Settings{length: 30 * time.Second, localHandoffs: 1000, cohortTime: 10 * time.Millisecond}},
		{"nil options", NewSettings([]Option{Cohort(0, 0)}, []Option{nil}), Settings{length: 30 * time.Second}},
		{"the client's", NewSettings(defaults), Settings{length: time.Minute, maxHold: time.Hour}},
		{"the lock's own win", NewSettings(defaults, []Option{Fixed(time.Second)}),
			Settings{length: time.Second, fixed: true, maxHold: time.Hour}},
		{"switched off again", NewSettings(defaults, []Option{MaxHold(0)}), Settings{length: time.Minute}},
		{"the last wins", NewSettings([]Option{Cohort(0, 0)}, []Option{Fixed(time.Second), Renewed(2 * time.Second)}), Settings{length: 2 * time.Second}},
		{"java's tokens", NewSettings([]Option{Cohort(0, 0)}, []Option{JavaTokens()}), Settings{length: 30 * time.Second, javaTokens: true}},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.what, tc.got, tc.want)
		}
		if err := tc.got.check(); err != nil {
			t.Errorf("%s: %v", tc.what, err)
		}
	}
	if s := NewSettings([]Option{JavaTokens()}); !s.JavaTokens() {
		t.Error("no java's tokens")
	}
}

func TestSettingsRefused(t *testing.T) {
	for what, option := range map[string]Option{
		"no lease": Renewed(0), "negative": Fixed(-time.Second), "too short": Fixed(MinLease - 1), "negative longest": MaxHold(-1),
		"a negative cohort": Cohort(-1, time.Second), "one in negative time": Cohort(1, -1), "too large a cohort": Cohort(MaxLocalHandoffs+1, time.Second),
	} {
		if err := NewSettings([]Option{option}).check(); !errors.Is(err, errs.BadArgument) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The margin is never so large that a lease has no usable time left.
func TestMargin(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		MinLease:               6 * time.Millisecond,
		200 * time.Millisecond: 7 * time.Millisecond,
		time.Second:            15 * time.Millisecond,
		30 * time.Second:       305 * time.Millisecond,
		time.Hour:              36*time.Second + 5*time.Millisecond,
	} {
		if got := margin(d); got != want {
			t.Errorf("of %v: %v, want %v", d, got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	for name, want := range map[string]string{
		"orders:42":              `"orders:42"`,
		"":                       `""`,
		"a\nb\x00":               `"a\nb\x00"`,
		strings.Repeat("x", 64):  `"` + strings.Repeat("x", 64) + `"`,
		strings.Repeat("x", 65):  `"` + strings.Repeat("x", 64) + `"… (65 bytes)`,
		strings.Repeat("x", 1e6): `"` + strings.Repeat("x", 64) + `"… (1000000 bytes)`,
	} {
		if got := Quote(name); got != want {
			t.Errorf("%.80q: %s, want %s", name, got, want)
		}
	}
}

func TestEarlierAndLater(t *testing.T) {
	var none time.Time
	one, two := time.Unix(1, 0), time.Unix(2, 0)
	for _, tc := range []struct{ a, b, earlier, later time.Time }{
		{one, two, one, two}, {two, one, one, two}, {none, one, one, one}, {one, none, one, one}, {none, none, none, none},
	} {
		if got := earlier(tc.a, tc.b); !got.Equal(tc.earlier) {
			t.Errorf("earlier of %v and %v: %v", tc.a, tc.b, got)
		}
		if got := later(tc.a, tc.b); !got.Equal(tc.later) {
			t.Errorf("later of %v and %v: %v", tc.a, tc.b, got)
		}
	}
}
