// The queue of those who wait for a lock, and the release that hands the lock to
// the first of them.

package lockhash

import (
	_ "embed"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/lease"
)

var (
	//go:embed lua/enter.lua
	enterSource string
	//go:embed lua/release.lua
	releaseSource string

	enterScript   = conn.NewScript("lock/enter", enterSource)
	releaseScript = conn.NewScript("lock/release", releaseSource)
)

// Turn says what a waiter does with a lock that it finds free.
type Turn int

const (
	// InTurn takes it if nobody is before it in the queue.
	InTurn Turn = iota
	// PlaceOnly leaves it to others of its process, who wait before it.
	PlaceOnly
	// OutOfTurn takes it, whoever is before it.
	OutOfTurn
)

// Queue is a lock with a queue. Plain locks and fair ones share it: it is one
// lock, and whoever releases it hands it to the next, of either kind.
type Queue struct {
	Hash
	At keys.FairLock
	// Own is the channel on which this Client hears that the lock was handed to it.
	Own string
	// TokenLife is how long the token is kept that nobody asks for; 0: for ever.
	TokenLife time.Duration
	// Place is how long a place is kept without being heard of.
	Place time.Duration
	// Openly is one release in how many is left to those outside the queue, such as
	// Java, if there are any. 0: none is.
	Openly int
}

// Of returns where that Client finds the lock at those keys.
func Of(at keys.FairLock, client string) Queue {
	return Queue{Hash: Hash{Key: at.Hash, Token: at.Token}, At: at, Own: at.GrantTo(client), TokenLife: TokenLife}
}

// Enter asks for the lock, and takes a place in the queue if it is not to be had;
// without a ticket none.
func (q *Queue) Enter(owner lease.Owner, length time.Duration, turn Turn, t *engine.Ticket) *conn.Call {
	var number int64
	var behind []string
	place := time.Duration(0)
	if t != nil {
		place, number, behind = q.Place, t.Seq, t.Behind
	}
	args := make([]any, 0, 6+len(behind))
	args = append(args, owner.String(), length.Milliseconds(), q.TokenLife.Milliseconds(),
		place.Milliseconds(), number, int(turn))
	for _, id := range behind {
		args = append(args, id)
	}
	return &conn.Call{
		Script: enterScript,
		Keys:   []string{q.At.Hash, q.At.Token, q.At.Queue, q.At.Alive, q.At.Open},
		Args:   args,
	}
}

// Release is lease.Resource's: it releases the lock, or leaves the queue.
func (q *Queue) Release(owner lease.Owner, publish string) *conn.Call {
	return q.ReleaseOf(owner.String(), publish)
}

// ReleaseOf is Release for any holder, also one that is no Owner.
func (q *Queue) ReleaseOf(holder, publish string) *conn.Call {
	return &conn.Call{
		Script: releaseScript,
		Keys:   []string{q.At.Hash, q.At.Queue, q.At.Alive, q.At.Open},
		Enough: 1,
		Args:   []any{holder, publish, q.At.Channel, q.At.Grant, q.Openly},
	}
}
