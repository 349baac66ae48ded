// The keys of each kind follow Redisson's rule, and some rules that hold for any name.

package keys_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestLockKeysAreRedissons(t *testing.T) {
	for _, tc := range []struct{ name, token, channel string }{
		{"orders", "redisson_lock_token:{orders}", "redisson_lock__channel:{orders}"},
		{"orders:42", "redisson_lock_token:{orders:42}", "redisson_lock__channel:{orders:42}"},
		{" ", "redisson_lock_token:{ }", "redisson_lock__channel:{ }"},
		{"Größe", "redisson_lock_token:{Größe}", "redisson_lock__channel:{Größe}"},
		{"\x00\xff\r\n", "redisson_lock_token:{\x00\xff\r\n}", "redisson_lock__channel:{\x00\xff\r\n}"},
		{"{user7}:cart", "redisson_lock_token:{user7}:cart", "redisson_lock__channel:{user7}:cart"},
		{"cart:{user7}", "redisson_lock_token:cart:{user7}", "redisson_lock__channel:cart:{user7}"},
		{"{orders}", "redisson_lock_token:{orders}", "redisson_lock__channel:{orders}"},
		{"{{t}}", "redisson_lock_token:{{t}}", "redisson_lock__channel:{{t}}"},
		{"{t}{s}", "redisson_lock_token:{t}{s}", "redisson_lock__channel:{t}{s}"},
		{"{t}}", "redisson_lock_token:{t}}", "redisson_lock__channel:{t}}"},
	} {
		k, err := keys.Space("").ForLock(tc.name)
		want := keys.Lock{Hash: tc.name, Token: tc.token, Channel: tc.channel}
		if err != nil || k != want {
			t.Errorf("%q:\n got %q, %v\nwant %q", tc.name, k, err, want)
		}
	}
}

// The fuzzer gets two names, so that it also tries the keys that must differ between names.
func FuzzLockKeys(f *testing.F) {
	for _, name := range []string{
		"orders", "{orders}", "{{orders}}", "{user7}:cart", "a{", "a{}b", "}x", "a}b", "{a}b}", "x{}{t}", "{", "}", "{}", "", "}x10019", "a}x2993",
		"\x00", "\xff\xfe", "\r\n", "holdfast_x", "redisson_lock_token:{orders}", strings.Repeat("{", 300),
	} {
		f.Add(name, "{"+name+"}")
		f.Add(name, "redisson_lock_token:"+name)
		f.Add(name, name+"}")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		ka, err := keys.Space("").ForLock(a)
		kb, err2 := keys.Space("").ForLock(b)
		for name, err := range map[string]error{a: err, b: err2} {
			if err != nil && !errors.Is(err, errs.BadArgument) {
				t.Errorf("%q: %v does not match errs.BadArgument", name, err)
			}
		}
		if err != nil || err2 != nil {
			return
		}
		for _, key := range []string{ka.Hash, ka.Token, ka.Channel} {
			if keys.Slot(key) != keys.Slot(a) {
				t.Errorf("%q: %q is in slot %d, not %d", a, key, keys.Slot(key), keys.Slot(a))
			}
		}
		if again, _ := keys.Space("").ForLock(a); again != ka || ka.Hash != a || ka.Token == ka.Hash || ka.Token == ka.Channel {
			t.Errorf("%q: %q, then %q", a, ka, again)
		}
		if ka.Hash == kb.Token || kb.Hash == ka.Token {
			t.Errorf("%q and %q: one's lock is the other's token", a, b)
		}
		braced := a == b || a == "{"+b+"}" || b == "{"+a+"}"
		if !braced && (ka.Hash == kb.Hash || ka.Token == kb.Token || ka.Channel == kb.Channel) {
			t.Errorf("%q and %q share one: %q, %q", a, b, ka, kb)
		}
	})
}

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

func TestOnceKeys(t *testing.T) {
	for _, tc := range []struct{ name, key, whole, record string }{
		{"charge", "order 7", "charge:order 7", "holdfast_once:{charge:order 7}"},
		{"billing:charge", "7", "billing:charge:7", "holdfast_once:{billing:charge:7}"},
		{"billing", "charge:7", "billing:charge%3A7", "holdfast_once:{billing:charge%3A7}"},
		{"billing", "charge%3A7", "billing:charge%253A7", "holdfast_once:{billing:charge%253A7}"},
		{"{app}:charge", "7", "{app}:charge:7", ""},
		{"charge", "a{b}", "charge:a{b}", ""},
	} {
		at, err := keys.Space("").ForOnce(tc.name, tc.key)
		if err != nil || at.Whole != tc.whole {
			t.Errorf("%q, %q: %q, %v", tc.name, tc.key, at, err)
		}
		if keys.Slot(at.Record) != keys.Slot(tc.whole) {
			t.Errorf("%q, %q: %q is in another slot than the name", tc.name, tc.key, at.Record)
		}
		if tc.record != "" && at.Record != tc.record {
			t.Errorf("%q, %q: %q, want %q", tc.name, tc.key, at.Record, tc.record)
		}
	}
	for _, pair := range [][2]string{{"", "k"}, {"n", ""}, {"holdfast_x", "k"}} {
		if _, err := keys.Space("").ForOnce(pair[0], pair[1]); !errors.Is(err, errs.BadArgument) {
			t.Errorf("%q: %v", pair, err)
		}
	}
}

func TestOnceKeysAreNobodyElses(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	letters := []string{"a", ":", "%", "3A", "{", "}", "25"}
	text := func() (s string) {
		for range 1 + random.IntN(4) {
			s += letters[random.IntN(len(letters))]
		}
		return s
	}
	seen := make(map[string][2]string)
	for range 50_000 {
		pair := [2]string{text(), text()}
		at, err := keys.Space("").ForOnce(pair[0], pair[1])
		redistest.Must(t, err)
		slot := keys.Slot(at.Record)
		for _, key := range []string{at.Record, at.Token, at.Channel} {
			if keys.Slot(key) != slot {
				t.Fatalf("%q: %q is in another slot", pair, key)
			}
			if other, found := seen[key]; found && other != pair {
				t.Fatalf("%q and %q share %q", pair, other, key)
			}
			seen[key] = pair
		}
	}
}

func TestTickKeys(t *testing.T) {
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.FixedZone("", 3600))
	for after, want := range map[time.Duration]string{0: "09:00:00Z", time.Second / 2: "09:00:00.5Z"} {
		if got, err := keys.Space("").ForTick("report", at.Add(after)); got != "holdfast_tick:{report}:2026-11-22T"+want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	if _, err := keys.Space("").ForTick("", at); !errors.Is(err, errs.BadArgument) {
		t.Error(err)
	}
}
