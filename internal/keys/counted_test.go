// The keys of semaphores and latches follow Redisson's rule, and some rules that hold for any name.

package keys_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/keys"
)

func TestSemaphoreAndLatchKeysAreRedissons(t *testing.T) {
	for _, tc := range []struct{ name, channel, taken, latch, sharded, generations, calls, all string }{
		{
			"orders", "redisson_sc:{orders}", "{orders}:timeout",
			"redisson_countdownlatch__channel__{orders}", "redisson_countdownlatch__channel__{orders}",
			"holdfast_latch:{orders}", "holdfast_calls:{orders}", "holdfast_permits:{orders}",
		},
		{
			"{user7}:cart", "redisson_sc:{user7}:cart", "{user7}:cart:timeout",
			"redisson_countdownlatch__channel__{{user7}:cart}", "holdfast_latch_channel:{3328}:{user7}:cart",
			"holdfast_latch:{3328}:{user7}:cart", "holdfast_calls:{3328}:{user7}:cart", "holdfast_permits:{3328}:{user7}:cart",
		},
	} {
		p, err := keys.Space("").ForPermits(tc.name)
		if want := (keys.Permits{Available: tc.name, Taken: tc.taken, Calls: tc.calls, Channel: tc.channel}); p != want || err != nil {
			t.Errorf("%q:\n got %q, %v\nwant %q", tc.name, p, err, want)
		}
		s, err := keys.Space("").ForSemaphore(tc.name)
		if want := (keys.Semaphore{Permits: tc.name, All: tc.all, Calls: tc.calls, Channel: tc.channel}); s != want || err != nil {
			t.Errorf("%q:\n got %q, %v\nwant %q", tc.name, s, err, want)
		}
		l, err := keys.Space("").ForLatch(tc.name)
		if want := (keys.Latch{Count: tc.name, Generations: tc.generations, Calls: tc.calls, Channel: tc.latch, Sharded: tc.sharded}); l != want || err != nil {
			t.Errorf("%q:\n got %q, %v\nwant %q", tc.name, l, err, want)
		}
	}
}

// A latch is shared with Java whatever its name: its channel needs no slot.
func TestALatchHasItsKeysWhateverTheBraces(t *testing.T) {
	got, err := keys.Space("").ForLatch("a}b")
	want := keys.Latch{
		Count: "a}b", Generations: "holdfast_latch:{20658}:a}b", Calls: "holdfast_calls:{20658}:a}b",
		Channel: "redisson_countdownlatch__channel__{a}b}", Sharded: "holdfast_latch_channel:{20658}:a}b",
	}
	if got != want || err != nil {
		t.Errorf("got %q, %v\nwant %q", got, err, want)
	}
}

func TestReadWriteLockKeysAreRedissons(t *testing.T) {
	got, err := keys.Space("").ForRW("orders")
	want := keys.RW{
		Hash: "orders", Token: "redisson_lock_token:{orders}", Channel: "redisson_rwlock:{orders}", Timeouts: "{orders}:",
		Readers: "holdfast_rw_readers:{orders}", Writers: "holdfast_rw_writers:{orders}", Waiting: "holdfast_rw_waiting:{orders}",
	}
	if err != nil || got != want {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	got, err = keys.Space("").ForRW("{user7}:cart")
	if err != nil || got.Timeouts != "{user7}:cart:" || got.Channel != "redisson_rwlock:{user7}:cart" {
		t.Errorf("%+v, %v", got, err)
	}
	if want := "holdfast_rw_writers:{3328}:{user7}:cart"; got.Writers != want {
		t.Errorf("the writers' marks are at %q, want %q", got.Writers, want)
	}
}
