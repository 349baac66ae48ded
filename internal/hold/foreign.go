// What is stored at the key of a resource when it is not what the resource keeps there.

package hold

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// contents is what the keys of resources hold, for those resources whose keys hold no hash.
var contents = map[string]engine.Content{
	"permits":       engine.Number,
	"barrier.place": engine.SortedSet,
	"slots":         engine.SortedSet,
}

// foreign adds to err what is stored at the resource's key, if that is not the resource's.
func (q *Request) foreign(ctx context.Context, err error) error {
	own, known := contents[q.Resource.Kind()]
	if !known {
		own = engine.Hash
	}
	return q.Engine.Foreign(ctx, own, q.Resource.Key(), err)
}
