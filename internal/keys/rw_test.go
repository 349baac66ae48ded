package keys

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/internal/errs"
)

func TestForRW(t *testing.T) {
	got, err := ForRW("orders")
	want := RW{
		Hash: "orders", Token: "redisson_lock_token:{orders}", Channel: "redisson_rwlock:{orders}", Timeouts: "{orders}:",
		Readers: "holdfast_rw_readers:{orders}", Writers: "holdfast_rw_writers:{orders}", Waiting: "holdfast_rw_waiting:{orders}",
	}
	if err != nil || got != want {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	got, err = ForRW("{user7}:cart")
	if err != nil || got.Timeouts != "{user7}:cart:" || got.Channel != "redisson_rwlock:{user7}:cart" {
		t.Errorf("%+v, %v", got, err)
	}
	if want := "holdfast_rw_writers:{3328}:{user7}:cart"; got.Writers != want {
		t.Errorf("the writers' marks are at %q, want %q", got.Writers, want)
	}
	for _, name := range []string{"a", "{u1}:a", "{{t}}", "{t}{s}", "x{y}z", "a b", "ü"} {
		k, err := ForRW(name)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		for _, key := range []string{k.Token, k.Channel, k.Timeouts + "x:1:rwlock_timeout:1", k.Readers, k.Writers, k.Waiting} {
			if Slot(key) != Slot(name) {
				t.Errorf("%q: %q is in another slot", name, key)
			}
		}
	}
	for _, name := range []string{"", "a{", "a{}b", "}x", "a}b", "x{}{t}", "{", "holdfast_x"} {
		if _, err := ForRW(name); !errors.Is(err, errs.BadArgument) {
			t.Errorf("%q: %v, want a bad argument", name, err)
		}
	}
}

func TestNoTwoReadWriteLocksShareTheirMarks(t *testing.T) {
	seen := make(map[string]string)
	for _, name := range []string{"x", "{x}", "{x}y", "{x}:y", "y{x}", "{y}{x}", "{x}{y}"} {
		k, err := ForRW(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{k.Readers, k.Writers, k.Waiting} {
			if other, is := seen[key]; is {
				t.Errorf("%q and %q share %q", name, other, key)
			}
			seen[key] = name
		}
	}
}
