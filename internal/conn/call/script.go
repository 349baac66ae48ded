// Scripts, and what all of them have in common.

package call

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"strings"
)

// The folder lua has what scripts begin with, unless a Trait says otherwise. Each file begins with its
// contract.
//
//go:embed lua
var folder embed.FS

var lua = Texts(folder)

// Texts returns a function that returns the texts of files in a package's folder lua, by their names
// without ".lua", one after the other. It is for variables of packages: if there is no such file, the
// function panics.
func Texts(folder embed.FS) func(names ...string) string {
	return func(names ...string) string {
		var all strings.Builder
		for _, name := range names {
			text, err := folder.ReadFile("lua/" + name + ".lua")
			if err != nil {
				panic(err)
			}
			all.Write(text)
		}
		return all.String()
	}
}

// Script is one Lua script.
//
// Every script takes its not-after as ARGV[1]: the time, in microseconds on the server's clock,
// after which it changes nothing and answers Late. Every script replies with an array whose first
// element is its status and whose second is the server's time in microseconds. The other elements
// are the script's own. time.lua and late.lua, which NewScript puts before it, see to both. A Trait
// is an exception, and so is the usual answer: see Briefly. A script that calls publish has publish.lua before it too, and one that calls
// outsiders has both publish.lua and outsiders.lua.
//
// Some servers check scripts before they run them. So each command is a literal, and each key is
// written KEYS[...] where the command names it. A test of this repository checks that.
type Script struct {
	name   string
	body   string // without what all scripts begin with
	source string
	sha    string
	traits Trait
	usual  Usual   // what the answer says that is a number alone; nil if it gives none
	quiet  *Script // what is sent to a server that refuses this one; nil if it does not publish
	bundle *Bundle // in which it may run; nil if it runs alone only
	part   int     // which part of the bundle it is
}

// Trait is a property that distinguishes a script from others.
type Trait int

const (
	// Timeless is a script that replies with 0 instead of the time, and ignores its not-after. It
	// has neither time.lua nor late.lua.
	Timeless Trait = 1 << iota
	// Always is a script that does its work however late it runs, because that is always right: a
	// release, or a look. It has no late.lua. It may still look at its not-after for a part of its
	// work.
	Always
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
	s := &Script{name: name, body: source, source: source}
	for _, t := range traits {
		s.traits |= t
	}
	begin := ""
	if !s.Is(Timeless) {
		begin = lua("time")
	}
	if s.minds() {
		begin += lua("late")
	}
	if !s.Is(Timeless) {
		begin += lua("now")
	}
	if s.asks() {
		s.source = lua("outsiders") + s.source
	}
	if s.publishes() || s.asks() {
		s.source = lua("publish") + s.source
	}
	s.source = begin + s.source
	s.sha = digest(s.source)
	s.quiet = s.quietForm(begin + source)
	return s
}

// Usual returns the numbers of the full answer that a usual answer to the call stands for.
type Usual func(c *Call, answer int64) [BundleWidth]int64

// Briefly says that the script's usual answer is a number alone: the time, or 1 from a script that is Timeless. To
// make an array of the answer costs a server more than a command does.
func (s *Script) Briefly(usual Usual) *Script {
	s.usual = usual
	return s
}

// Brief reports whether the script's usual answer is a number alone.
func (s *Script) Brief() bool { return s.usual != nil }

// minds reports whether the script changes nothing when it runs after its not-after.
func (s *Script) minds() bool { return !s.Is(Timeless) && !s.Is(Always) }

// publishes reports whether the script publishes; asks, whether it has to know who listens.
func (s *Script) publishes() bool { return strings.Contains(s.body, publishes) }
func (s *Script) asks() bool      { return strings.Contains(s.body, asks) }

// digest returns the name by which Redis knows a script with that text.
func digest(source string) string {
	sum := sha1.Sum([]byte(source))
	return hex.EncodeToString(sum[:])
}

// Is reports whether the script has the trait.
func (s *Script) Is(t Trait) bool { return s.traits&t != 0 }

// Name returns the script's name, for errors and logs.
func (s *Script) Name() string { return s.name }

// Source returns the script's text, as Redis gets it.
func (s *Script) Source() string { return s.source }

// Command appends to args the command that runs the script: with its text, or by its hash, which the
// server must know. Both are pointers, because a value would be copied to the heap to become an any.
func (s *Script) Command(args []any, full bool) []any {
	if full {
		return append(args, "eval", &s.source)
	}
	return append(args, "evalsha", &s.sha)
}

// Hushed returns the script's quiet form; nil if it needs none.
func (s *Script) Hushed() *Script { return s.quiet }

// InBundle returns the bundle in which the script may run, nil if it runs alone only.
func (s *Script) InBundle() *Bundle { return s.bundle }

// AsPart returns which part of its bundle the script is.
func (s *Script) AsPart() int { return s.part }
