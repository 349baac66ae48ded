// The Owner: the id under which something is held.

package hold

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// Owner is the id under which something is held. Users know it as lease.Owner.
type Owner struct {
	client string
	id     int64
}

// NewOwner returns the owner with that number of that client.
func NewOwner(client string, id int64) Owner { return Owner{client, id} }

// ParseOwner is lease.ParseOwner.
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

// Among returns a test of whether an id is that of one of the owners. If there are none, each id passes.
func Among[O fmt.Stringer](owners []O) func(id string) bool {
	return func(id string) bool {
		return len(owners) == 0 || slices.ContainsFunc(owners, func(o O) bool { return o.String() == id })
	}
}

// String is String of lease.Owner.
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

// Short is Short of lease.Owner.
func (o Owner) Short() string {
	if len(o.client) < 8 {
		return "nobody"
	}
	return o.client[:8] + "…:" + strconv.FormatInt(o.id, 10)
}

// IsZero is IsZero of lease.Owner.
func (o Owner) IsZero() bool { return o == Owner{} }
