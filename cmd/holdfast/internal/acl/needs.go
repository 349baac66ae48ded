// What each kind needs for a pattern of names: its keys and channels, with the pattern in place of the name.

package acl

import (
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/rights"
)

// anyClient stands in a pattern for the id of whichever Client.
const anyClient = "*"

func mutex(pattern string) (need, error) {
	at, err := keys.Space("").ForFairLock(pattern)
	if err != nil {
		return need{}, err
	}
	return need{
		keys:     []string{at.Hash, at.Token, at.Queue, at.Alive, at.Open},
		channels: []string{at.Channel, at.Grant, at.GrantTo(anyClient)},
		commands: ofMutex,
	}, nil
}

// tabled returns what a kind needs by the tables of package rights.
func tabled(kind, pattern string) (all need, _ error) {
	// The slot of a name with odd braces depends on the whole name, and is part of its keys.
	if err := keys.Space("").CheckShared(pattern); err != nil {
		return need{}, err
	}
	for _, n := range rights.Needs("", pattern, anyClient, false) {
		if n.Kind == kind {
			all.add(need{n.Keys, n.Channels, n.Commands})
		}
	}
	if len(all.keys) == 0 {
		return need{}, fmt.Errorf("there is no %s of such a name", kind)
	}
	return all, nil
}

// beyondMutex returns what a kind that is a Mutex too needs.
func beyondMutex(kind, pattern string) (need, error) {
	all, err := mutex(pattern)
	if err != nil {
		return need{}, err
	}
	more, err := tabled(kind, pattern)
	all.add(more)
	return all, err
}

// striped returns what the stripes need: they are Mutexes, and their number has a key.
func striped(pattern string) (need, error) {
	all, err := mutex(pattern + ":*")
	if err != nil {
		return need{}, err
	}
	number, err := keys.Space("").ForStripes(pattern)
	all.add(need{keys: []string{number}, commands: []string{"get", "set"}})
	return all, err
}

func readwrite(pattern string) (need, error) {
	all, err := tabled("rwlock", pattern)
	if err != nil {
		return need{}, err
	}
	at, err := keys.Space("").ForRW(pattern)
	for n, key := range all.keys {
		if strings.HasPrefix(key, at.Timeouts) {
			all.keys[n] = at.Timeouts + "*:rwlock_timeout:*"
		}
	}
	return all, err
}

// latch adds the channel that a latch has where channels belong to slots.
func latch(pattern string) (need, error) {
	all, err := tabled("latch", pattern)
	if err != nil {
		return need{}, err
	}
	at, err := keys.Space("").ForLatch(pattern)
	all.add(need{channels: []string{at.Sharded}})
	return all, err
}

// oneTime puts the pattern in place of the name and the key of a Once.
func oneTime(pattern string) (need, error) {
	all, err := tabled("once", pattern)
	if err != nil {
		return need{}, err
	}
	at, err := keys.Space("").ForOnce(pattern, "*")
	if err != nil {
		return need{}, err
	}
	all.keys = []string{at.Record, at.Token}
	all.channels = []string{at.Channel}
	tick := keys.Space("").OnceRecordAt(pattern) // with the same braces
	all.keys = append(all.keys, strings.Replace(tick, "holdfast_once:", "holdfast_tick:", 1)+":*", keys.Space("").PauseAt(pattern))
	return all, nil
}

func quorum(pattern string) (need, error) {
	all, err := beyondMutex("quorum", pattern)
	all.add(need{keys: []string{"holdfast_quorum"}})
	return all, err
}

// forced returns what holdfast release --force needs beyond the kind of the thing: to note that in Redis.
func forced(pattern string) (need, error) {
	if err := keys.Space("").CheckShared(pattern); err != nil {
		return need{}, err
	}
	n, err := rights.OfForced("", pattern)
	return need{keys: n.Keys, commands: n.Commands}, err
}

// inspect returns what holdfast ls, inspect and watch read: whatever is stored at the names or beside them, and what
// Clients say of themselves.
func inspect(pattern string) (all need, err error) {
	for _, kind := range []func(string) (need, error){mutex, readwrite, latch, oneTime, forced} {
		if n, err := kind(pattern); err == nil {
			all.keys = append(all.keys, n.keys...)
		}
	}
	for _, kind := range []string{"semaphore", "permits", "barrier", "slots", "shards", "limiter", "leader"} {
		if n, err := tabled(kind, pattern); err == nil {
			all.keys = append(all.keys, n.keys...)
		}
	}
	all.add(need{keys: []string{clients}, commands: ofInspect})
	return all, keys.Space("").Check(pattern)
}
