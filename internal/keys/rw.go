package keys

import (
	"fmt"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// The prefixes of what a read/write lock has beside the keys of every lock. The marks of
// waiters are Holdfast's own; Java does not look at them. So each name can have marks of its
// own, where Redisson's rule lets names share their neighbours.
const (
	rwChannelPrefix = "redisson_rwlock"
	readersPrefix   = "holdfast_rw_readers"
	writersPrefix   = "holdfast_rw_writers"
	waitingPrefix   = "holdfast_rw_waiting"
)

// RW holds the keys and the channel of one read/write lock.
type RW struct {
	Hash    string // the lock itself: a hash {mode, holder: count} with an expiry
	Token   string // the last fencing token given to a writer
	Channel string // on which a release is announced
	// Timeouts is the beginning of the key of each read hold:
	// <Timeouts><holder>:rwlock_timeout:<i>.
	Timeouts string

	Readers string // sorted set {waiting reader: since when}
	Writers string // sorted set {waiting writer: since when}
	Waiting string // sorted set {waiting owner: until when it counts}
}

// ForRW returns the keys and the channel of the read/write lock of that name. It takes the names
// that ForLock takes, except those whose neighbours Redisson's rule puts into another slot than the
// name: for these the error matches errs.BadArgument. Holdfast cannot put the neighbours elsewhere,
// as it does for a plain lock: Go and Java both look at the keys of the read holds to decide
// whether a reader is alive, and would drop each other's readers.
func (s Space) ForRW(name string) (RW, error) {
	if err := s.Check(name); err != nil {
		return RW{}, err
	}
	k := RW{
		Hash:     name,
		Token:    s.neighbour(tokenPrefix, name),
		Channel:  s.neighbour(rwChannelPrefix, name),
		Timeouts: s.timeouts(name),
		Readers:  s.own(readersPrefix, name),
		Writers:  s.own(writersPrefix, name),
		Waiting:  s.own(waitingPrefix, name),
	}
	if hashed(k.Token) != hashed(name) || hashed(k.Timeouts) != hashed(name) {
		return RW{}, fmt.Errorf("the braces in the name make no hash tag: %w", errs.BadArgument)
	}
	return k, nil
}

// timeouts is Redisson's suffixName.
func (s Space) timeouts(name string) string {
	return string(s) + neighbour("", name)[1:] + ":"
}
