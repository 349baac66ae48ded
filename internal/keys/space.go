// The prefix of all keys and channels of a Client.

package keys

import (
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// Space is what all keys and channels of a Client begin with; "" where they have no prefix. Its methods
// take names as they are in Redis, which At makes: the key of a lock is the prefix and the name. A key
// beside the name is the prefix, followed by the key that would be beside a lock of the prefixed name:
//
//	name        "orders"
//	lock        app:orders
//	token       app:redisson_lock_token:{app:orders}
//	channel     app:redisson_lock__channel:{app:orders}
//
// A prefix has no braces, so each of these is in the slot in which it would be without the first app:.
type Space string

// InSpace returns the Space of that prefix. If the prefix has braces, or begins as a key beside a name
// does, the error matches errs.BadArgument.
func InSpace(prefix string) (Space, error) {
	if braced(prefix) {
		return "", fmt.Errorf("the key prefix %q has braces, which would decide the slot of every key: %w", prefix, errs.BadArgument)
	}
	if err := unreserved(prefix); err != nil {
		return "", fmt.Errorf("the key prefix %q: %w", prefix, err)
	}
	return Space(prefix), nil
}

// At returns the name as it is in Redis; "" for "".
func (s Space) At(name string) string {
	if name == "" {
		return ""
	}
	return string(s) + name
}

// Name returns the name that is at key, and false if key is not in the Space.
func (s Space) Name(key string) (name string, ok bool) { return strings.CutPrefix(key, string(s)) }

// Pattern returns the pattern, for SCAN, of the keys in the Space whose rest matches pattern.
func (s Space) Pattern(pattern string) string { return literal.Replace(string(s)) + pattern }

// literal makes the pattern that matches a text and no other.
var literal = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// CheckJava is CheckShared for what promises that Redisson finds the same keys, which it does not with a
// prefix.
func (s Space) CheckJava(name string) error {
	if s != "" {
		return fmt.Errorf("JavaTokens with the key prefix %q, which Redisson does not have: %w", string(s), errs.BadArgument)
	}
	return s.CheckShared(name)
}

// BesidePrefixed reports whether key is beside a name in some Space: then the prefix of that Space is in it
// twice, before and after what such a key begins with.
func BesidePrefixed(key string) bool {
	for _, beginning := range reserved {
		at := strings.Index(key, beginning)
		if at > 0 && strings.Contains(key[at+len(beginning):], key[:at]) {
			return true
		}
	}
	return false
}
