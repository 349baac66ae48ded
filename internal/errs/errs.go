// Package errs holds the sentinel errors that all packages of Holdfast return. Package lease, which
// users see, gives them their public names and says what each means.
package errs

import "errors"

// The errors. Package lease says what each means.
var (
	Busy        = errors.New("held by another")
	Lost        = errors.New("lease lost")
	Released    = errors.New("lease already released")
	MaxHold     = errors.New("held for longer than allowed")
	Unavailable = errors.New("redis could not be reached in time")
	Closed      = errors.New("client closed")
	WrongType   = errors.New("the key holds another type of value")
	OutOfMemory = errors.New("redis is out of memory")
	Denied      = errors.New("denied by redis")
	BadArgument = errors.New("bad argument")
	Upgrade     = errors.New("upgrade refused")
	NoPermits   = errors.New("no such permits")
	Deleted     = errors.New("deleted")
	Unknown     = errors.New("outcome unknown")
	NoQuorum    = errors.New("no majority of the servers")
	Mismatch    = errors.New("another payload under the same key")
	TooLarge    = errors.New("the result is too large")
	WorkFailed  = errors.New("the work has failed before")
	NoLeader    = errors.New("nobody leads")
	Resigned    = errors.New("term resigned")
	Broken      = errors.New("the barrier has broken")
	Parties     = errors.New("another number of parties")
	Paused      = errors.New("paused")
	Superseded  = errors.New("superseded by a newer Lock")

	NotReplicated = errors.New("too few replicas have it")

	// Expired also matches Lost, so that a holder that checks for Lost stops its work.
	Expired error = special{"fixed lease over", Lost}
)

// special is an error that also matches another one.
type special struct {
	text string
	also error
}

func (s special) Error() string { return s.text }

func (s special) Is(target error) bool { return target == s.also }
