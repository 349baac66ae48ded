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
