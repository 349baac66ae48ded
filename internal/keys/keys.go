// Package keys maps a name to its keys and channels in Redis: which key holds the lock, which
// its token, and which channel announces its release.
//
// The rule is Redisson's, so a Java process finds the same keys. The key of the lock itself is
// always the name, byte for byte. The keys that belong to the lock (its neighbours) have a
// prefix before the name, and are in the same hash slot of a Redis Cluster:
//
//	name        "orders"      "{user7}:cart"
//	lock        orders        {user7}:cart
//	token       redisson_lock_token:{orders}       redisson_lock_token:{user7}:cart
//	channel     redisson_lock__channel:{orders}    redisson_lock__channel:{user7}:cart
//
// Redisson's rule only checks whether the name contains "{", and so leaves the slot for names
// with odd braces ("a}b", "a{", "a{}b"). For those names alone, the neighbours go to
//
//	holdfast_lock_token:{N}:a}b
//
// where N is the smallest decimal number whose slot is the name's. Holdfast and Java still
// exclude each other on such a name, because the lock's key is the same; only the wake-up
// messages do not cross. Holdfast polls then; Java sleeps to the end of the lease that it saw.
// Where such a name would make something wrong, and not only slow, the name is refused: see
// CheckShared.
package keys

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// Prefixes of keys and channels. The redisson_ ones are Redisson's own.
const (
	tokenPrefix   = "redisson_lock_token"
	channelPrefix = "redisson_lock__channel"

	oddTokenPrefix   = "holdfast_lock_token"
	oddChannelPrefix = "holdfast_lock_channel"
)

// reserved are the prefixes that no name may have: the key of a lock with such a name would collide
// with a key that belongs to another lock.
var reserved = [...]string{
	tokenPrefix + ":",
	"redisson_lock_queue:", "redisson_lock_timeout:", "redisson_unlock_latch:",
	"holdfast_",
}

// Lock holds the keys and the channel of one lock.
type Lock struct {
	Hash    string // the lock itself: a hash {holder: count} with an expiry
	Token   string // the last fencing token that was given
	Channel string // on which an open release is announced
}

// ForLock returns the keys and the channel of the lock of that name. The name may be any bytes,
// but not empty, and may not begin as a neighbour's key does ("redisson_lock_token:",
// "holdfast_" and so on); otherwise the error matches errs.BadArgument.
func (s Space) ForLock(name string) (Lock, error) {
	if err := s.Check(name); err != nil {
		return Lock{}, err
	}
	return s.lockAt(name), nil
}

// TokenAt returns the key of the token of the lock of that name, which has been checked.
func (s Space) TokenAt(name string) string {
	if braced(name) {
		return s.lockAt(name).Token
	}
	return s.neighbour(tokenPrefix, name)
}

// lockAt is ForLock for a name that has been checked.
func (s Space) lockAt(name string) Lock {
	// Comparing slot numbers would not do: they may agree by chance, for one prefix only.
	if token := s.neighbour(tokenPrefix, name); hashed(token) == hashed(name) {
		return Lock{Hash: name, Token: token, Channel: s.neighbour(channelPrefix, name)}
	}
	tag := slotTag(Slot(name))
	return Lock{
		Hash:    name,
		Token:   string(s) + oddTokenPrefix + ":{" + tag + "}:" + name,
		Channel: string(s) + oddChannelPrefix + ":{" + tag + "}:" + name,
	}
}

// braced reports whether the name has braces, which decide its slot, or look as if they did.
func braced(name string) bool { return strings.ContainsAny(name, "{}") }

// ForStripes returns the key that holds the number of stripes of a name. Its slot does not
// matter.
func (s Space) ForStripes(name string) (string, error) {
	return string(s) + "holdfast_stripes:" + name, s.Check(name)
}

// Check returns an error that matches errs.BadArgument if name cannot be the name of a
// synchronizer.
func (s Space) Check(name string) error {
	within := strings.TrimPrefix(name, string(s))
	if within == "" {
		return fmt.Errorf("the name is empty: %w", errs.BadArgument)
	}
	if err := unreserved(within); err != nil {
		return err
	}
	return unreserved(name) // the prefix may end within a reserved one
}

// unreserved returns an error if the name begins like a key that is kept beside a name.
func unreserved(name string) error {
	for _, prefix := range reserved {
		if strings.HasPrefix(name, prefix) {
			return fmt.Errorf("names that begin with %q are reserved: %w", prefix, errs.BadArgument)
		}
	}
	return nil
}

// CheckShared is Check for synchronizers whose neighbours Redisson must find too: Redisson's
// rule must keep the neighbours in the name's slot.
func (s Space) CheckShared(name string) error {
	if err := s.Check(name); err != nil {
		return err
	}
	if hashed(neighbour(tokenPrefix, name)) != hashed(name) {
		return fmt.Errorf("the braces in the name make no hash tag: %w", errs.BadArgument)
	}
	return nil
}

// neighbour returns Redisson's key or channel of that prefix for the name, within the Space.
func (s Space) neighbour(prefix, name string) string { return string(s) + neighbour(prefix, name) }

// neighbour is Redisson's prefixName.
func neighbour(prefix, name string) string {
	if strings.Contains(name, "{") {
		return prefix + ":" + name
	}
	return prefix + ":{" + name + "}"
}

// slotTag returns the smallest decimal number whose slot is slot.
func slotTag(slot int) string {
	return strconv.Itoa(int(slotTags()[slot]))
}

// slotTags finds a number for every slot. That takes some milliseconds, so it is done once, and
// only when a name with odd braces turns up.
var slotTags = sync.OnceValue(func() *[Slots]int32 {
	var tags [Slots]int32
	var found [Slots]bool
	for number, left := int32(0), Slots; left > 0; number++ {
		slot := Slot(strconv.Itoa(int(number)))
		if !found[slot] {
			found[slot], tags[slot] = true, number
			left--
		}
	}
	return &tags
})
