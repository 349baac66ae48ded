// The keys of semaphores and latches follow Redisson's rule, and some rules that hold for any name.

package keys_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/holdfast-go/holdfast/internal/errs"
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
		p, err := keys.ForPermits(tc.name)
		if want := (keys.Permits{Available: tc.name, Taken: tc.taken, Calls: tc.calls, Channel: tc.channel}); p != want || err != nil {
			t.Errorf("%q:\n got %q, %v\nwant %q", tc.name, p, err, want)
		}
		s, err := keys.ForSemaphore(tc.name)
		if want := (keys.Semaphore{Permits: tc.name, All: tc.all, Calls: tc.calls, Channel: tc.channel}); s != want || err != nil {
			t.Errorf("%q:\n got %q, %v\nwant %q", tc.name, s, err, want)
		}
		l, err := keys.ForLatch(tc.name)
		if want := (keys.Latch{Count: tc.name, Generations: tc.generations, Calls: tc.calls, Channel: tc.latch, Sharded: tc.sharded}); l != want || err != nil {
			t.Errorf("%q:\n got %q, %v\nwant %q", tc.name, l, err, want)
		}
	}
	for _, name := range []string{"", "holdfast_calls:{orders}"} {
		_, s := keys.ForSemaphore(name)
		_, p := keys.ForPermits(name)
		_, l := keys.ForLatch(name)
		for _, err := range []error{s, p, l} {
			if !errors.Is(err, errs.BadArgument) {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}

// A latch is shared with Java whatever its name: its channel needs no slot.
func TestALatchHasItsKeysWhateverTheBraces(t *testing.T) {
	got, err := keys.ForLatch("a}b")
	want := keys.Latch{
		Count: "a}b", Generations: "holdfast_latch:{20658}:a}b", Calls: "holdfast_calls:{20658}:a}b",
		Channel: "redisson_countdownlatch__channel__{a}b}", Sharded: "holdfast_latch_channel:{20658}:a}b",
	}
	if got != want || err != nil {
		t.Errorf("got %q, %v\nwant %q", got, err, want)
	}
}

func TestPermitsThatJavaWouldLookForElsewhereAreRefused(t *testing.T) {
	for _, name := range []string{"a}b", "a{", "a{}b", "{}x", "}x", "x{}{t}", "{", "}"} {
		_, s := keys.ForSemaphore(name)
		_, p := keys.ForPermits(name)
		for _, err := range []error{keys.CheckShared(name), s, p} {
			if !errors.Is(err, errs.BadArgument) {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
	for _, name := range []string{"orders", "{user7}:cart", "cart:{user7}", "{t}{s}", "pl{ai}n{er}", "{x}", "naïve-名前"} {
		if err := keys.CheckShared(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Whatever the name, all of its keys are in one slot, and a key that only Holdfast knows belongs to
// no other name.
func TestSemaphoresAndLatchesStayInTheSlot(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	seen := make(map[string]string)
	for range 20_000 {
		name := randomName(random)
		l, err := keys.ForLatch(name)
		if err != nil {
			continue
		}
		all := []string{l.Generations, l.Calls, l.Sharded}
		if p, err := keys.ForPermits(name); err == nil {
			all = append(all, p.Available, p.Taken, p.Calls, p.Channel)
		}
		for _, key := range all {
			if keys.Slot(key) != keys.Slot(name) {
				t.Errorf("%q: %q is in another slot", name, key)
			}
		}
		for _, key := range []string{l.Calls, l.Generations} {
			if other, ok := seen[key]; ok && other != name {
				t.Errorf("%q and %q share %q", name, other, key)
			}
			seen[key] = name
		}
	}
}
