// What stands at a key that should hold a lock and holds something else.

package hold

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
)

//go:embed lua/type.lua
var typeSource string

var typeScript = conn.NewScript("hold/type", typeSource, conn.Always, conn.Mixed)

// foreignTry is how long Redis is asked for the type, on the way to an error.
const foreignTry = 500 * time.Millisecond

// foreign adds to err, if it says that the key holds another type of value, which type that is and
// how it may have come there. If that cannot be learned, for example because rights are missing,
// foreign returns err as it is.
func (q *Request) foreign(ctx context.Context, err error) error {
	if !errors.Is(err, errs.WrongType) || !strings.Contains(err.Error(), "wrong kind of value") {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, foreignTry)
	defer cancel()
	call := &conn.Call{Script: typeScript, Keys: []string{q.Resource.Key()}}
	if q.Engine.Conn.Run(ctx, call) != nil {
		return err
	}
	switch kind := call.Text(2); kind {
	case "none", "hash", "zset":
		return err // the wrong value stands beside the lock, or is gone by now
	case "string":
		return fmt.Errorf("%w: a string stands there; is it a lock of redsync, redislock or another program?", errs.WrongType)
	default:
		return fmt.Errorf("%w: a %s stands there; is it another program's?", errs.WrongType, kind)
	}
}
