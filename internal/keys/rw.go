package keys

import (
	"fmt"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// What belongs to a read/write lock, beside what any lock has. The marks are
// Holdfast's own; Java does not look at them. So no two names share them, as they
// share what is at Redisson's neighbours.
const (
	rwChannelPrefix = "redisson_rwlock"
	readersPrefix   = "holdfast_rw_readers"
	writersPrefix   = "holdfast_rw_writers"
	waitingPrefix   = "holdfast_rw_waiting"
)

// RW is where one read/write lock lives.
type RW struct {
	Hash    string // the lock itself: a hash {mode, holder: count} with an expiry
	Token   string // the last fencing token given to a writer
	Channel string // where a release is told
	// Timeouts is what the key of each read hold begins with:
	// <Timeouts><holder>:rwlock_timeout:<i>.
	Timeouts string

	Readers string // sorted set {waiting reader: since when}
	Writers string // sorted set {waiting writer: since when}
	Waiting string // sorted set {waiting owner: until when it counts}
}

// ForRW returns where the read/write lock of that name lives. Beyond what
// ForLock asks, Redisson's own rule must keep what belongs to the lock in the
// name's slot; otherwise the error matches errs.BadArgument. It cannot be put
// elsewhere, as for the plain lock: each side decides by the keys of the read
// holds whether a reader is alive, so that one that looks in another place than
// Java would drop readers that hold the lock.
func ForRW(name string) (RW, error) {
	if err := Check(name); err != nil {
		return RW{}, err
	}
	k := RW{
		Hash:     name,
		Token:    neighbour(tokenPrefix, name),
		Channel:  neighbour(rwChannelPrefix, name),
		Timeouts: timeouts(name),
		Readers:  own(readersPrefix, name),
		Writers:  own(writersPrefix, name),
		Waiting:  own(waitingPrefix, name),
	}
	if hashed(k.Token) != hashed(name) || hashed(k.Timeouts) != hashed(name) {
		return RW{}, fmt.Errorf("the braces in the name make no hash tag: %w", errs.BadArgument)
	}
	return k, nil
}

// timeouts is Redisson's suffixName.
func timeouts(name string) string {
	return neighbour("", name)[1:] + ":"
}
