// What stands at a key that is to be a lock, and is none.

package lease

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

var typeScript = conn.NewScript("lease/type", typeSource, conn.Mixed)

// foreignTry is for how long the type is asked for, on the way to an error.
const foreignTry = 500 * time.Millisecond

// foreign names in err, if it says that the key holds another type of value, the type that
// stands there, and how it may have come there. Where that cannot be learned, as for want of
// rights, err stays as it is.
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
		return err // the value that is wrong stands beside the lock, or has gone
	case "string":
		return fmt.Errorf("%w: a string stands there; is it a lock of redsync, redislock or another program?", errs.WrongType)
	default:
		return fmt.Errorf("%w: a %s stands there; is it another program's?", errs.WrongType, kind)
	}
}
