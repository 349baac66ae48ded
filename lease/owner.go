// The Owner: the id under which something is held.

package lease

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// Owner is the id under which something is held: "<uuid of the Client>:<number of the
// acquisition>". It is the field that a Redisson lock has in its hash. Two Owners are the same if
// they compare equal. The zero Owner is nobody.
//
// Anybody who knows an Owner can attach to its hold. Treat it as a secret.
type Owner struct {
	client string
	id     int64
}

// NewOwner returns the owner with that number of that client. It is for the packages of the
// synchronizers.
func NewOwner(client string, id int64) Owner { return Owner{client, id} }

// ParseOwner parses what Owner.String returned, in this process or another. It also accepts the
// holders of Redisson, whose number is a thread's. For any other string the error matches
// ErrBadArgument.
func ParseOwner(s string) (Owner, error) {
	client, number, ok := strings.Cut(s, ":")
	if !ok || len(client) != 36 {
		return Owner{}, badOwner(s)
	}
	if err := uuid.Validate(client); err != nil {
		return Owner{}, badOwner(s)
	}
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil || strconv.FormatInt(id, 10) != number {
		return Owner{}, badOwner(s)
	}
	return Owner{client, id}, nil
}

func badOwner(s string) error {
	return fmt.Errorf("holdfast: parse owner of %d bytes: want <uuid>:<number>: %w", len(s), errs.BadArgument)
}

// String returns the whole id, or "" for the zero Owner.
func (o Owner) String() string {
	if o == (Owner{}) {
		return ""
	}
	var digits [20]byte
	number := strconv.AppendInt(digits[:0], o.id, 10)
	var id strings.Builder
	id.Grow(len(o.client) + 1 + len(number))
	id.WriteString(o.client)
	id.WriteByte(':')
	id.Write(number)
	return id.String()
}

// Short returns enough of the id to tell owners apart in a log, and too little
// to attach to a hold.
func (o Owner) Short() string {
	if len(o.client) < 8 {
		return "nobody"
	}
	return o.client[:8] + "…:" + strconv.FormatInt(o.id, 10)
}

// IsZero reports whether o is the zero Owner, which is nobody.
func (o Owner) IsZero() bool { return o == Owner{} }
