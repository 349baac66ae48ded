// The state of a lock in Redis.

package lockhash

import (
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/hold"
)

// State is what Redis says about a lock.
type State struct {
	Locked    bool
	Remaining time.Duration // 0 if it is not locked
	Holders   []Holder
}

// Holder is one field of the hash.
type Holder struct {
	ID    string // the id of an Owner, or what another program has put there
	Count int    // 0 if it is not a number
}

// foreign returns a field that no Mutex has, neither Holdfast's nor Redisson's, if there is one. A
// holder's field is <client>:<number>, with a count.
func (s State) foreign() (field string, found bool) {
	for _, h := range s.Holders {
		at := strings.LastIndexByte(h.ID, ':')
		_, err := strconv.ParseInt(h.ID[at+1:], 10, 64)
		if at < 1 || err != nil || h.Count < 1 {
			return h.ID, true
		}
	}
	return "", false
}

// cut returns as much of an application's own field as an error shows: 32 bytes.
func cut(field string) string { return field[:min(len(field), 32)] }

// Count returns how many leases the count of a holder stands for. The count of a holder that was
// handed the lock is 0 until it has asked for its whole lease, or has been entered again; that
// stands for one lease.
func Count(text string) int {
	if text == "0" {
		return 1
	}
	count, _ := strconv.Atoi(text)
	return count
}

// Count returns how many leases that owner has on the lock.
func (s State) Count(owner hold.Owner) int {
	for _, h := range s.Holders {
		if h.ID == owner.String() {
			return h.Count
		}
	}
	return 0
}

// Holder returns the holder of the lock, or the zero Owner.
func (s State) Holder() (hold.Owner, error) {
	if len(s.Holders) == 0 {
		return hold.Owner{}, nil
	}
	return hold.ParseOwner(s.Holders[0].ID)
}
