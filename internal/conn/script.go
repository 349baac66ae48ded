// Scripts, and what all of them have in common.

package conn

import (
	"crypto/sha1"
	"encoding/hex"
)

// Script is one Lua script.
//
// Every script takes its not-after as ARGV[1]: the time, in microseconds on the server's clock,
// after which it may change nothing and answers Late. Every script replies with an array whose
// first element is its status and whose second is the server's time in microseconds. The other
// elements are the script's own.
type Script struct {
	name   string
	source string
	sha    string
	traits Trait
}

// Trait is a property that distinguishes a script from others.
type Trait int

const (
	// Timeless is a script that replies with 0 instead of the time.
	Timeless Trait = 1 << iota
	// Mixed is a script whose reply has texts too. A reply of numbers alone is read without an
	// allocation for each element.
	Mixed
)

// The statuses of scripts. Each script's reply begins with one of them.
const (
	// Late: the script ran after its not-after, and so did nothing.
	Late = -1
	// Refused: it did not do what it was asked to, because of what it found or did not find.
	Refused = 0
	// Done: it did what it was asked to, now or by an earlier sending. Of a call that takes
	// something: it is granted.
	Done = 1
	// Awaited: it did nothing, because others wait for the thing: see free.lua.
	Awaited = 2
)

// NewScript returns the script with that name, source and traits.
func NewScript(name, source string, traits ...Trait) *Script {
	sum := sha1.Sum([]byte(source))
	s := &Script{name: name, source: source, sha: hex.EncodeToString(sum[:])}
	for _, t := range traits {
		s.traits |= t
	}
	return s
}

// is reports whether the script has the trait.
func (s *Script) is(t Trait) bool { return s.traits&t != 0 }

// Name returns the script's name, for errors and logs.
func (s *Script) Name() string { return s.name }

// Source returns the script's text.
func (s *Script) Source() string { return s.source }
