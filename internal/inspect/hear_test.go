// An Ear hears the channels of its name.

package inspect

import (
	"slices"
	"testing"
)

// A subscription by these patterns hears the channels of the name, and of no other.
func TestChannelsOf(t *testing.T) {
	at, err := channelsOf("", "orders:42")
	want := []string{
		"redisson_lock__channel:{orders:42}", "holdfast_leader_changes:{orders:42}",
		"redisson_rwlock:{orders:42}", "redisson_sc:{orders:42}", "redisson_countdownlatch__channel__{orders:42}",
		"holdfast_barrier_channel:{orders:42}", "holdfast_slots_channel:{orders:42}",
		"holdfast_once_channel:{orders:42}", "holdfast_lock_grant:{orders:42}:*",
	}
	if got := at.patterns(); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := channelsOf("", "holdfast_x"); err == nil {
		t.Error("a name that can be none has channels")
	}
	if at, _ = channelsOf("", `a*?[\`); at.patterns()[0] != `redisson_lock__channel:{a\*\?\[\\}` {
		t.Error(at.patterns()[0])
	}
}
