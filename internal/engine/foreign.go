// What is stored at a key that should hold something of Holdfast and holds something else.

package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
)

var typeScript = conn.NewScript("engine/type", lua("type"), conn.Always, conn.Mixed)

// foreignTry is how long the call waits for Redis to say what is stored there, before it returns
// its error.
const foreignTry = 500 * time.Millisecond

// Content is what a kind keeps at a key, as type.lua names it.
type Content string

// What the kinds keep at the keys that are named like them.
const (
	Hash      Content = "hash"   // locks, and the records of a Once
	Number    Content = "number" // semaphores and latches
	SortedSet Content = "zset"   // the places of a barrier
)

// Foreign takes an error of a call on key. If err says that a key holds another type of value, Foreign
// adds what is stored at key, how it may have come there, and what to do. own is what should be stored
// there. If key holds own or nothing, the wrong value is at another key, or is gone by now, and
// Foreign returns err as it is. So it does if Redis does not say, for example because rights are
// missing.
func (e *Engine) Foreign(ctx context.Context, own Content, key string, err error) error {
	if !errors.Is(err, errs.WrongType) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, foreignTry)
	defer cancel()
	call := &conn.Call{Script: typeScript, Keys: []string{key}}
	if e.Conn.Run(ctx, call) != nil {
		return err
	}
	found := Content(call.ResultText())
	if found == own || found == "none" {
		return err
	}
	return fmt.Errorf("%w: %s", errs.WrongType, found.foreign())
}

// foreign returns where it may have come from, and what to do.
func (c Content) foreign() string {
	switch c {
	case "string":
		return "a string stands there, as redsync, redislock and other locks by SET NX leave it; docs/from says how to come from them"
	case Number:
		return "a number stands there, as a Semaphore or a Latch keeps it, or a lock by SET NX; give each kind a name of its own"
	case Hash:
		return "a hash stands there, as a Mutex or an RWMutex keeps it; give each kind a name of its own"
	default:
		return fmt.Sprintf("a %s stands there; is it another program's?", string(c))
	}
}
