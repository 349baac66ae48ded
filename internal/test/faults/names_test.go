// Names may be any bytes: on a cluster all keys of a name are in one slot, and no two names
// collide.

package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// oddNames are names that break code that does not expect them. Some of them are refused.
var oddNames = []string{
	" ", "  ", "a", "a ", " a", "a:queue", "a:write", "A",
	"{", "}", "{}", "}{", "{{", "}}", "{{}}", "{}{}", "{a", "a}", "a{", "}a", "{a}", "{a}b", "b{a}", "a{}b", "{}a", "{{a}}", "{a}{b}", "}{a}", "a}b", "{a{b}c}",
	"line\nfeed", "\r\n", "*1\r\n$4\r\nPING\r\n", "tab\t", "\x00", "\x00\x00", "a\x00b", "\xff\xfe", "\x80{", "é", "日本{語}", "\u202e",
	"redisson_lock__channel:{a}", "redisson_lock__channel:a", "lock", "%s%d%n", "*", "?", "[a]", "\\", "'", "\"",
	strings.Repeat("x", 1<<16), strings.Repeat("{", 1<<16), strings.Repeat("x", 1<<16-1) + "{y}",
	"", "redisson_lock_token:a", "redisson_lock_token:{a}", "redisson_lock_queue:{a}", "redisson_lock_timeout:{a}", "redisson_unlock_latch:x", "holdfast_", "holdfast_lock_token:{1}:a}b",
}

// refused applies the rule in docs/keyspace.md.
func refused(name string) bool {
	for _, prefix := range []string{"redisson_lock_token:", "redisson_lock_queue:", "redisson_lock_timeout:", "redisson_unlock_latch:", "holdfast_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return name == ""
}

// useName does everything that can be done with a name. a holds the name with l, and b is another
// process.
func useName(b, a *holdfast.Client, name string, l *holdfast.Lease) error {
	ctx := l.Context(context.Background())
	if _, err := b.Mutex(name).TryLock(context.Background()); !errors.Is(err, holdfast.ErrBusy) {
		return fmt.Errorf("TryLock of another = %w, want ErrBusy", err)
	}
	inner, err := a.Mutex(name).Lock(ctx)
	if err != nil {
		return err
	}
	if err := l.Extend(ctx, 40*time.Second); err != nil {
		return err
	}
	if n, err := b.Mutex(name).HoldCount(context.Background(), l.Owner()); err != nil || n != 2 {
		return fmt.Errorf("HoldCount = %d, %w", n, err)
	}
	if err := errors.Join(inner.Release(ctx), l.Release(ctx)); err != nil {
		return err
	}
	next, err := b.Mutex(name).TryLock(context.Background())
	if err != nil {
		return err
	}
	if next.Token() <= l.Token() {
		return fmt.Errorf("token %d after %d", next.Token(), l.Token())
	}
	return next.Release(context.Background())
}

// Any two names are locked at once. Neither is in the way of the other, no key of either goes to
// another slot, and the refused names are the documented ones.
func FuzzNames(f *testing.F) {
	set := redistest.Cluster(f, 3, 0)
	clienttest.LeaveNothing(f, set.Client(f))
	a, b := clienttest.OpenClient(f, set.Client(f)), clienttest.OpenClient(f, set.Client(f))
	for i, name := range oddNames {
		f.Add(name, oddNames[(i+1)%len(oddNames)])
		f.Add(name, "redisson_lock_token:"+name)
	}
	f.Fuzz(func(t *testing.T, one, other string) {
		if one == other {
			return
		}
		var held []*holdfast.Lease
		defer func() { clienttest.GiveBack(t, held...) }()
		for _, name := range []string{other, one} {
			l, err := a.Mutex(name).TryLock(clienttest.Generous(t))
			if refused(name) {
				if !errors.Is(err, holdfast.ErrBadArgument) {
					t.Errorf("%q: %v, want ErrBadArgument", name, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%q beside %q: %v", one, other, err)
				return
			}
			held = append(held, l)
		}
		if len(held) == 2 {
			l := held[1]
			held = held[:1]
			if err := useName(b, a, one, l); err != nil {
				t.Errorf("%q beside %q: %v", one, other, err)
			}
		}
	})
}
