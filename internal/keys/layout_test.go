// What holds for the keys of every kind, whatever the name.

package keys_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// kind is one kind of synchronizer. of returns the keys and channels that only Holdfast knows, of which no two
// names share one, and those that are in the name's slot because Redisson puts them there too. A kind with
// javasRule is refused for a name whose keys Java would look for in another slot.
type kind struct {
	of        func(name string) (own, shared []string, err error)
	javasRule bool
}

var kinds = map[string]kind{
	"lock": {of: func(name string) (_, _ []string, _ error) {
		at, err := keys.ForLock(name)
		return nil, []string{at.Hash, at.Token, at.Channel}, err
	}},
	"fair lock": {of: func(name string) (_, _ []string, _ error) {
		at, err := keys.ForFairLock(name)
		if plain, _ := keys.ForLock(name); at.Lock != plain {
			err = fmt.Errorf("it is the lock %v", at.Lock)
		}
		return []string{at.Queue, at.Alive, at.Open, at.GrantTo("6e0e2d3c-0000-4000-8000-000000000001")}, nil, err
	}},
	"election": {of: func(name string) (_, _ []string, _ error) {
		at, err := keys.ForLeader(name)
		if fair, _ := keys.ForFairLock(name); at.FairLock != fair {
			err = fmt.Errorf("it is the lock %v", at.FairLock)
		}
		return []string{at.Record, at.Names, at.Changes}, nil, err
	}},
	"release by force": {of: func(name string) (_, _ []string, _ error) {
		key, err := keys.ForForced(name)
		return []string{key}, nil, err
	}},
	"barrier": {of: func(name string) (_, _ []string, _ error) {
		at, err := keys.ForBarrier(name)
		return []string{at.Record, at.Places, at.Channel}, nil, err
	}},
	"limit": {of: func(name string) (_, _ []string, _ error) {
		at, err := keys.ForLimit(name)
		return []string{at.Key, at.Channel}, nil, err
	}},
	"latch": {of: func(name string) (_, _ []string, _ error) {
		at, err := keys.ForLatch(name)
		return []string{at.Generations, at.Calls}, []string{at.Count, at.Sharded}, err
	}},
	"semaphore": {javasRule: true, of: func(name string) (_, _ []string, _ error) {
		at, err := keys.ForSemaphore(name)
		return []string{at.All, at.Calls}, []string{at.Permits, at.Channel}, err
	}},
	"permits": {javasRule: true, of: func(name string) (_, _ []string, _ error) {
		at, err := keys.ForPermits(name)
		return []string{at.Calls}, []string{at.Available, at.Taken, at.Channel}, err
	}},
	"read/write lock": {javasRule: true, of: func(name string) (_, _ []string, _ error) {
		at, err := keys.ForRW(name)
		return []string{at.Readers, at.Writers, at.Waiting},
			[]string{at.Hash, at.Token, at.Channel, at.Timeouts + "x:1:rwlock_timeout:1"}, err
	}},
}

// oddNames are names for which Redisson's own keys leave the slot, and a cluster would refuse its scripts. In
// the last ones one of them is in the slot by chance, which says nothing about the others.
var oddNames = []string{"a}b", "a{", "a{}b", "{}x", "}x", "x{}{t}", "{", "}", "{}", "}{", "{}a{b}", "a}{b", "x}y", "x{",
	"}x10019", "}x64819", "}x75858", "a}x2993", "a}x8776"}

// goodNames are names that Redisson's rule keeps in their slot.
var goodNames = []string{"orders", "{user7}:cart", "cart:{user7}", "{t}{s}", "pl{ai}n{er}", "{x}", "x", "{x}y", "{x}:y", "y{x}",
	"{y}{x}", "{x}{y}", "{{t}}", "{t}}", "a:b", "{a}:b", "places:{x}", "names:{x}", "holdfast", "a b", "naïve-名前", "\x00\xff\r\n",
	"redisson_lock_token", "redisson", "Holdfast_", "x:holdfast_lock_token:{7}", "{holdfast_}"}

// Whatever the name, all keys of a kind are in the name's slot, and a key that only Holdfast knows belongs to
// no other name.
func TestEachKindStaysInItsSlotAndToItself(t *testing.T) {
	names := slices.Concat(oddNames, goodNames)
	random := rand.New(rand.NewPCG(5, 6))
	for range 20_000 {
		names = append(names, randomName(random))
	}
	for what, kind := range kinds {
		seen := make(map[string]string)
		for _, name := range names {
			if keys.Check(name) != nil {
				continue
			}
			own, shared, err := kind.of(name)
			if refused := kind.javasRule && keys.CheckShared(name) != nil; refused != errors.Is(err, errs.BadArgument) || !refused && err != nil {
				t.Errorf("%s %q: %v", what, name, err)
			}
			if err != nil {
				continue
			}
			for _, key := range slices.Concat(own, shared) {
				if keys.Slot(key) != keys.Slot(name) {
					t.Errorf("%s %q: %q is in another slot", what, name, key)
				}
			}
			for _, key := range own {
				if other, ok := seen[key]; ok && other != name {
					t.Errorf("%s: %q and %q share %q", what, name, other, key)
				}
				seen[key] = name
			}
		}
	}
}

// A name that could be another name's key is refused, by each kind.
func TestNamesRefused(t *testing.T) {
	for _, name := range []string{
		"",
		"redisson_lock_token:{orders}", "redisson_lock_token:", "redisson_lock_queue:{orders}",
		"redisson_lock_timeout:{orders}", "redisson_unlock_latch:{orders}:0",
		"holdfast_", "holdfast_lock_token:{7}:a}b", "holdfast_calls:{orders}",
	} {
		if err := keys.Check(name); !errors.Is(err, errs.BadArgument) {
			t.Errorf("Check(%q): %v, want errs.BadArgument", name, err)
		}
		for what, kind := range kinds {
			if _, _, err := kind.of(name); !errors.Is(err, errs.BadArgument) {
				t.Errorf("%s %q: %v, want errs.BadArgument", what, name, err)
			}
		}
	}
}

func TestPermitsThatJavaWouldLookForElsewhereAreRefused(t *testing.T) {
	for _, name := range oddNames {
		if err := keys.CheckShared(name); !errors.Is(err, errs.BadArgument) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range goodNames {
		if err := errors.Join(keys.CheckShared(name), keys.Check(name)); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// The lock itself is at its name whatever the braces, where a Java process finds it. The number in a
// neighbour's tag is part of the layout: another process must compute the same one.
func TestOddBracesTagIsTheSmallestNumber(t *testing.T) {
	for _, name := range oddNames[:14] {
		at, err := keys.ForLock(name)
		want := 0
		for keys.Slot(itoa(want)) != keys.Slot(name) {
			want++
		}
		tagged := "{" + itoa(want) + "}:" + name
		if (at != keys.Lock{Hash: name, Token: "holdfast_lock_token:" + tagged, Channel: "holdfast_lock_channel:" + tagged}) || err != nil {
			t.Errorf("%q: %q, %v, want the tag %d", name, at, err, want)
		}
	}
}
