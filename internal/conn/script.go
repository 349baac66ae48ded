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
	name     string
	source   string
	sha      string
	timeless bool // does not tell the time
}

// Late is the status of a script that came after its not-after, and so did
// nothing.
const Late = -1

// NewScript returns the script of that name and source.
func NewScript(name, source string) *Script {
	sum := sha1.Sum([]byte(source))
	return &Script{name: name, source: source, sha: hex.EncodeToString(sum[:])}
}

// NewTimelessScript is NewScript for one that tells 0 instead of the time.
func NewTimelessScript(name, source string) *Script {
	s := NewScript(name, source)
	s.timeless = true
	return s
}

// Name returns the script's name, for errors and logs.
func (s *Script) Name() string { return s.name }

// Source returns the script's text.
func (s *Script) Source() string { return s.source }
