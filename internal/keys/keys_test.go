// The keys of a name follow Redisson's rule, and some rules that hold for any name.

package keys_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/keys"
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
		k, err := keys.ForLock(tc.name)
		want := keys.Lock{Hash: tc.name, Token: tc.token, Channel: tc.channel}
		if err != nil || k != want {
			t.Errorf("%q:\n got %q, %v\nwant %q", tc.name, k, err, want)
		}
	}
}

// For these names, Redisson's own keys leave the slot, and a cluster would refuse its scripts.
func TestOddBracesStayInTheSlot(t *testing.T) {
	for _, name := range []string{"a{", "a{}b", "}x", "a}b", "x{}{t}", "{", "}", "{}", "}{", "{}a{b}", "a}{b"} {
		k, err := keys.ForLock(name)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if k.Hash != name {
			t.Errorf("%q: the lock is at %q: a Java process would not find it", name, k.Hash)
		}
		for prefix, key := range map[string]string{"holdfast_lock_token:{": k.Token, "holdfast_lock_channel:{": k.Channel} {
			number, found := strings.CutPrefix(key, prefix)
			number, tail, closed := strings.Cut(number, "}:")
			if !found || !closed || tail != name || strings.Trim(number, "0123456789") != "" {
				t.Errorf("%q: %q is not %sN}:%s", name, key, prefix, name)
			}
			if keys.Slot(key) != keys.Slot(name) {
				t.Errorf("%q: %q is in another slot", name, key)
			}
		}
	}
}

// The number in a neighbour's tag is part of the layout: another process must compute the same
// number.
func TestOddBracesTagIsTheSmallestNumber(t *testing.T) {
	for _, name := range []string{"a{", "a}b", "}{"} {
		k, err := keys.ForLock(name)
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		for keys.Slot(itoa(want)) != keys.Slot(name) {
			want++
		}
		if wantToken := "holdfast_lock_token:{" + itoa(want) + "}:" + name; k.Token != wantToken {
			t.Errorf("%q: the token is at %q, want %q", name, k.Token, wantToken)
		}
	}
}

// Redisson's key of such a name may be in the name's slot by chance, once in 16384 names. That says
// nothing about the next neighbour of the same name.
func TestSlotsThatCoincide(t *testing.T) {
	for _, name := range []string{"}x10019", "}x64819", "}x75858", "a}x2993", "a}x8776"} {
		k, err := keys.ForLock(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{k.Token, k.Channel} {
			if keys.Slot(key) != keys.Slot(name) {
				t.Errorf("%q: %q is in another slot", name, key)
			}
		}
	}
}

func TestNamesRefused(t *testing.T) {
	for _, name := range []string{
		"",
		"redisson_lock_token:{orders}",
		"redisson_lock_token:",
		"redisson_lock_queue:{orders}",
		"redisson_lock_timeout:{orders}",
		"redisson_unlock_latch:{orders}:0",
		"holdfast_",
		"holdfast_lock_token:{7}:a}b",
	} {
		if _, err := keys.ForLock(name); !errors.Is(err, errs.BadArgument) {
			t.Errorf("%q: %v, want errs.BadArgument", name, err)
		}
		if err := keys.Check(name); !errors.Is(err, errs.BadArgument) {
			t.Errorf("Check(%q): %v, want errs.BadArgument", name, err)
		}
	}
	for _, name := range []string{"redisson_lock_token", "redisson", "Holdfast_", "holdfast", "x:holdfast_lock_token:{7}", "{holdfast_}"} {
		if _, err := keys.ForLock(name); err != nil {
			t.Errorf("%q: %v", name, err)
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
		ka, err := keys.ForLock(a)
		if err != nil {
			refused(t, a, err)
			return
		}
		if ka.Hash != a {
			t.Errorf("%q: the lock is at %q", a, ka.Hash)
		}
		if again, _ := keys.ForLock(a); again != ka {
			t.Errorf("%q: %q, then %q", a, ka, again)
		}
		slot := keys.Slot(a)
		for _, key := range []string{ka.Hash, ka.Token, ka.Channel} {
			if keys.Slot(key) != slot {
				t.Errorf("%q: %q is in slot %d, not %d", a, key, keys.Slot(key), slot)
			}
		}
		if ka.Token == ka.Hash || ka.Token == ka.Channel {
			t.Errorf("%q: keys collide: %q", a, ka)
		}

		kb, err := keys.ForLock(b)
		if err != nil {
			refused(t, b, err)
			return
		}
		if ka.Hash == kb.Token || kb.Hash == ka.Token {
			t.Errorf("%q and %q: one's lock is the other's token", a, b)
		}
		if a == b {
			return
		}
		if ka.Hash == kb.Hash {
			t.Errorf("%q and %q have one lock", a, b)
		}
		braced := a == "{"+b+"}" || b == "{"+a+"}"
		if !braced && (ka.Token == kb.Token || ka.Channel == kb.Channel) {
			t.Errorf("%q and %q share a neighbour: %q, %q", a, b, ka, kb)
		}
	})
}

func refused(t *testing.T, name string, err error) {
	t.Helper()
	if !errors.Is(err, errs.BadArgument) {
		t.Errorf("%q: %v does not match errs.BadArgument", name, err)
	}
}
