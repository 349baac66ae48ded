// Leased permits as package hold sees them.

package semaphore

import (
	"crypto/sha256"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/line"
)

// resource is some permits of one semaphore, as package hold sees them.
type resource struct {
	name    string
	at      keys.Permits
	n       int    // how many
	publish string // the command that publishes, if a grant finds permits to spare
}

func (r *resource) Kind() string { return permitsKind }
func (r *resource) Name() string { return r.name }

// Permits makes resource a hold.Permits.
func (r *resource) Permits() int64 { return int64(r.n) }
func (r *resource) Key() string    { return r.at.Available }

func (r *resource) Describe(w *line.Want) {
	*w = waiting(permitsKind, r.at.Available, r.at.Channel, r.n)
}

func (r *resource) Acquire(owner hold.Owner, length time.Duration) *conn.Call {
	return &conn.Call{
		Script: leaseScript,
		Keys:   []string{r.at.Available, r.at.Taken},
		Args:   r.ids(owner, length.Milliseconds(), r.publish, r.at.Channel),
	}
}

// Recount is Renew: nobody re-enters permits, so there is never more than one lease on them.
func (r *resource) Recount(owner hold.Owner, _ int, length time.Duration) *conn.Call {
	return r.Renew(owner, length)
}

// Renew needs only one key. So it goes on in a slot on the move.
func (r *resource) Renew(owner hold.Owner, length time.Duration) *conn.Call {
	return &conn.Call{
		Script: renewScript,
		Keys:   []string{r.at.Taken},
		Args:   r.ids(owner, length.Milliseconds()),
	}
}

func (r *resource) Release(owner hold.Owner, publish string) *conn.Call {
	return release(r.at, r.ids(owner, publish, r.at.Channel))
}

// release returns the call that gives back the permits that args names after its first two.
func release(at keys.Permits, args []any) *conn.Call {
	return &conn.Call{
		Script: releaseScript,
		Keys:   []string{at.Available, at.Taken},
		Args:   args,
	}
}

// ids returns args, followed by the ids of the owner's permits.
func (r *resource) ids(owner hold.Owner, args ...any) []any {
	for i := range r.n {
		args = append(args, string(id(owner, i)))
	}
	return args
}

// idSize is the length of Redisson's ids, in bytes.
const idSize = 16

// id returns the id of an owner's i-th permit. It is derived from the owner, so that a request that
// is sent again asks for the same permits.
func id(owner hold.Owner, i int) []byte {
	text := append([]byte(owner.String()), ':')
	sum := sha256.Sum256(strconv.AppendInt(text, int64(i), 10))
	return sum[:idSize]
}
