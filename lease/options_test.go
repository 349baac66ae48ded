// These tests are about options: their defaults, their order, and what they refuse.

package lease

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestSettings(t *testing.T) {
	defaults := []Option{Renewed(time.Minute), MaxHold(time.Hour), Cohort(0, 0)}
	for _, tc := range []struct {
		what string
		got  hold.Settings
		want hold.Settings
	}{
		{"nothing said", hold.Defaults(), hold.Settings{Length: 30 * time.Second, LocalHandoffs: 1000, CohortTime: 10 * time.Millisecond}},
		{"nil options", hold.NewSettings([]Option{Cohort(0, 0)}, []Option{nil}), hold.Settings{Length: 30 * time.Second}},
		{"the client's", hold.NewSettings(defaults), hold.Settings{Length: time.Minute, MaxHold: time.Hour}},
		{"the lock's own win", hold.NewSettings(defaults, []Option{Fixed(time.Second)}),
			hold.Settings{Length: time.Second, Fixed: true, MaxHold: time.Hour}},
		{"switched off again", hold.NewSettings(defaults, []Option{MaxHold(0)}), hold.Settings{Length: time.Minute}},
		{"the last wins", hold.NewSettings([]Option{Cohort(0, 0)}, []Option{Fixed(time.Second), Renewed(2 * time.Second)}), hold.Settings{Length: 2 * time.Second}},
		{"java's tokens", hold.NewSettings([]Option{Cohort(0, 0)}, []Option{JavaTokens()}), hold.Settings{Length: 30 * time.Second, JavaTokens: true}},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.what, tc.got, tc.want)
		}
		if err := tc.got.Check(); err != nil {
			t.Errorf("%s: %v", tc.what, err)
		}
	}
}

func TestSettingsRefused(t *testing.T) {
	for what, option := range map[string]Option{
		"no lease": Renewed(0), "negative": Fixed(-time.Second), "too short": Fixed(MinLease - 1), "negative longest": MaxHold(-1),
		"a negative grace": Grace(-1), "a grace of the whole lease": Grace(DefaultLease - MinLease + 1), "a negative cohort": Cohort(-1, time.Second), "one in negative time": Cohort(1, -1), "too large a cohort": Cohort(hold.MaxLocalHandoffs+1, time.Second),
	} {
		redistest.Is(t, what, hold.NewSettings([]Option{option}).Check(), errs.BadArgument)
	}
}
