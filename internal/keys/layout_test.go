// What holds for the keys of every kind, whatever the name.

package keys_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// kind is one kind of synchronizer. of takes a name as it is in Redis, and returns the keys and channels that only Holdfast knows, of which no two
// names share one, and those that are in the name's slot because Redisson puts them there too. A kind with
// javasRule is refused for a name whose keys Java would look for in another slot.
type kind struct {
	of        func(space keys.Space, name string) (own, shared []string, err error)
	javasRule bool
}

var kinds = map[string]kind{
	"once": {of: func(space keys.Space, name string) (_, _ []string, _ error) {
		return []string{space.OnceRecordAt(name)}, nil, space.Check(name)
	}},
	"tick": {of: func(space keys.Space, name string) (_, _ []string, _ error) {
		key, err := space.ForTick(name, time.Unix(0, 0))
		return []string{key}, nil, err
	}},
	"quorum": {of: func(space keys.Space, name string) (_, _ []string, _ error) {
		return []string{space.QuorumTurns(name)}, nil, space.Check(name)
	}},
	"lock": {of: func(space keys.Space, name string) (_, _ []string, _ error) {
		at, err := space.ForLock(name)
		return nil, []string{at.Hash, at.Token, at.Channel}, err
	}},
	"fair lock": {of: func(space keys.Space, name string) (_, _ []string, _ error) {
		at, err := space.ForFairLock(name)
		if plain, _ := space.ForLock(name); at.Lock != plain {
			err = fmt.Errorf("it is the lock %v", at.Lock)
		}
		return []string{at.Queue, at.Alive, at.Open, at.GrantTo("6e0e2d3c-0000-4000-8000-000000000001")}, nil, err
	}},
	"election": {of: func(space keys.Space, name string) (_, _ []string, _ error) {
		at, err := space.ForLeader(name)
		if fair, _ := space.ForFairLock(name); at.FairLock != fair {
			err = fmt.Errorf("it is the lock %v", at.FairLock)
		}
		return []string{at.Record, at.Names, at.Changes}, nil, err
	}},
	"release by force": {of: func(space keys.Space, name string) (_, _ []string, _ error) {
		key, err := space.ForForced(name)
		return []string{key}, nil, err
	}},
	"barrier": {of: func(space keys.Space, name string) (_, _ []string, _ error) {
		at, err := space.ForBarrier(name)
		return []string{at.Record, at.Places, at.Channel}, nil, err
	}},
	"limit": {of: func(space keys.Space, name string) (_, _ []string, _ error) {
		at, err := space.ForLimit(name)
		return []string{at.Key, at.Channel}, nil, err
	}},
	"shards": {of: func(space keys.Space, name string) (_, _ []string, _ error) {
		at, err := space.ForShards(name)
		return []string{at.Members, at.Table, at.Token, at.Channel}, nil, err
	}},
	"latch": {of: func(space keys.Space, name string) (_, _ []string, _ error) {
		at, err := space.ForLatch(name)
		return []string{at.Generations, at.Calls}, []string{at.Count, at.Sharded}, err
	}},
	"semaphore": {javasRule: true, of: func(space keys.Space, name string) (_, _ []string, _ error) {
		at, err := space.ForSemaphore(name)
		return []string{at.All, at.Calls}, []string{at.Permits, at.Channel}, err
	}},
	"permits": {javasRule: true, of: func(space keys.Space, name string) (_, _ []string, _ error) {
		at, err := space.ForPermits(name)
		return []string{at.Calls}, []string{at.Available, at.Taken, at.Channel}, err
	}},
	"read/write lock": {javasRule: true, of: func(space keys.Space, name string) (_, _ []string, _ error) {
		at, err := space.ForRW(name)
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
	for range 10_000 {
		names = append(names, randomName(random))
	}
	for _, space := range []keys.Space{"", "app:"} {
		for what, kind := range kinds {
			kind.keepsToItself(t, space, what, names)
		}
	}
}

// keepsToItself fails the test unless the keys of each name are in the name's slot and in the Space, and those
// that only Holdfast knows belong to no other name.
func (k kind) keepsToItself(t *testing.T, space keys.Space, what string, names []string) {
	t.Helper()
	seen := make(map[string]string)
	for _, name := range names {
		name = space.At(name)
		if space.Check(name) != nil {
			continue
		}
		own, shared, err := k.of(space, name)
		if refused := k.javasRule && space.CheckShared(name) != nil; refused != errors.Is(err, errs.BadArgument) || !refused && err != nil {
			t.Errorf("%s %q: %v", what, name, err)
		}
		if err != nil {
			continue
		}
		for _, key := range slices.Concat(own, shared) {
			if keys.Slot(key) != keys.Slot(name) || !strings.HasPrefix(key, string(space)) {
				t.Errorf("%s %q in the space %q: %q is in another slot or space", what, name, space, key)
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

// A name that could be another name's key is refused, by each kind.
func TestNamesRefused(t *testing.T) {
	for _, name := range []string{
		"",
		"redisson_lock_token:{orders}", "redisson_lock_token:", "redisson_lock_queue:{orders}",
		"redisson_lock_timeout:{orders}", "redisson_unlock_latch:{orders}:0",
		"holdfast_", "holdfast_lock_token:{7}:a}b", "holdfast_calls:{orders}",
	} {
		if err := keys.Space("").Check(name); !errors.Is(err, errs.BadArgument) {
			t.Errorf("Check(%q): %v, want errs.BadArgument", name, err)
		}
		for what, kind := range kinds {
			if _, _, err := kind.of("", name); !errors.Is(err, errs.BadArgument) {
				t.Errorf("%s %q: %v, want errs.BadArgument", what, name, err)
			}
		}
	}
}

func TestPermitsThatJavaWouldLookForElsewhereAreRefused(t *testing.T) {
	for _, name := range oddNames {
		if err := keys.Space("").CheckShared(name); !errors.Is(err, errs.BadArgument) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range goodNames {
		if err := errors.Join(keys.Space("").CheckShared(name), keys.Space("").Check(name)); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// The lock itself is at its name whatever the braces, where a Java process finds it. The number in a
// neighbour's tag is part of the layout: another process must compute the same one.
func TestOddBracesTagIsTheSmallestNumber(t *testing.T) {
	for _, name := range oddNames[:14] {
		at, err := keys.Space("").ForLock(name)
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

// What a prefix comes before, and which it may not be.
func TestASpace(t *testing.T) {
	space, err := keys.InSpace("app:")
	redistest.Must(t, err)
	at, err := space.ForLock(space.At("orders"))
	want := keys.Lock{Hash: "app:orders", Token: "app:redisson_lock_token:{app:orders}", Channel: "app:redisson_lock__channel:{app:orders}"}
	if at != want || err != nil {
		t.Errorf("%+v, %v", at, err)
	}
	for got, want := range map[string]string{
		space.ForClient("id")[:31]: "app:holdfast_client:{holdfast}:",
		space.QuorumMarker():       "app:holdfast_quorum",
		space.At(""):               "",
	} {
		redistest.Equal(t, got, want, "%q, want %q", want)
	}
	for _, name := range []string{"", "holdfast_x", "redisson_lock_token:{app:orders}"} {
		if err := space.Check(space.At(name)); !errors.Is(err, errs.BadArgument) {
			t.Errorf("the name %q: %v", name, err)
		}
	}
	for _, prefix := range []string{"{app}:", "app{", "}", "holdfast_", "redisson_lock_token:"} {
		if _, err := keys.InSpace(prefix); !errors.Is(err, errs.BadArgument) {
			t.Errorf("the prefix %q: %v", prefix, err)
		}
	}
	if space, err := keys.InSpace("hold"); err != nil || !errors.Is(space.Check("holdfast_x"), errs.BadArgument) {
		t.Errorf("a prefix and a name that make a key of another's: %v", err)
	}
}

// Nobody reads a Client's id from a log, whatever the prefix.
func TestAGrantsChannelIsToldWithoutTheId(t *testing.T) {
	for _, space := range []keys.Space{"", "app:"} {
		told := keys.Told(space.FairLockAt(space.At("orders")).GrantTo("6e0e2d3c-0000-4000-8000-000000000001"))
		if strings.Contains(told, "-") || !strings.HasSuffix(told, ":6e0e2d3c…") {
			t.Errorf("in the space %q: %s", space, told)
		}
	}
}
