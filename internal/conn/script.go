// Scripts and what all of them have in common.

package conn

import (
	"crypto/sha1"
	"encoding/hex"
)

// Script is one Lua script.
//
// Every script takes as ARGV[1] its not-after: microseconds on the server's
// clock past which it may change nothing and answers Late. Every script replies
// with an array whose first element is its status and whose second is the
// server's time in microseconds. What follows is the script's own.
type Script struct {
	name   string
	source string
	sha    string
	traits Trait
}

// Trait is what distinguishes a script from others.
type Trait int

const (
	// Timeless is a script that tells 0 instead of the time.
	Timeless Trait = 1 << iota
	// Mixed is a script that answers with texts too. Numbers alone are read without an
	// allocation for each.
	Mixed
)

// Late is the status of a script that came after its not-after, and so did
// nothing.
const Late = -1

// no is the status of a script that did not do what was asked, because of what it
// found, or did not find.
const no = 0

// NewScript returns the script of that name and source, and of those traits.
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
