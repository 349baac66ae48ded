// A lock's holder is asked to give it up.

package lockhash

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/hold"
)

var (
	askScript    = conn.NewScript("lock/ask", lua("ask"))
	wantedScript = conn.NewScript("lock/wanted", lua("wanted"), conn.Always)
)

// AskHolder asks the holder to give the lock up. It reports whether anybody holds it.
func (l *Lock) AskHolder(ctx context.Context) (bool, error) {
	const op = "ask for"
	if err := l.Usable(op); err != nil {
		return false, err
	}
	publish, err := l.Engine.Conn.PublishCommand(ctx)
	if err != nil {
		return false, l.Failed(op, err)
	}
	call := &conn.Call{
		Script: askScript,
		Keys:   []string{l.Key(), l.space().AskedAt(l.Key())},
		Args:   []any{publish, l.At().Grant},
	}
	if err := l.Run(ctx, op, call); err != nil {
		return false, err
	}
	return call.Status() == conn.Done, nil
}

// Wanted implements hold.Asked.
func (q *Queue) Wanted(owner hold.Owner) *conn.Call {
	return &conn.Call{
		Script: wantedScript,
		Keys:   []string{q.space().AskedAt(q.Key()), q.At().Alive},
		Enough: 1,
		Args:   []any{owner.String()},
	}
}
