// What is asked of a lock's holder: to give it up, at once or when it can.

package lockhash

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/hold"
)

var (
	askScript      = conn.NewScript("lock/ask", lua("ask"))
	wantedScript   = conn.NewScript("lock/wanted", lua("wanted"), conn.Always)
	claimScript    = conn.NewScript("lock/claim", lua("claim"))
	withdrawScript = conn.NewScript("lock/withdraw", lua("withdraw"), conn.Always)
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

// Claim implements hold.Asked.
func (q *Queue) Claim(claimant hold.Owner, came int64, publish string) *conn.Call {
	at := q.At()
	return &conn.Call{
		Script: claimScript,
		Keys:   []string{q.space().NewestAt(q.Key()), at.Hash},
		Enough: 1,
		Args:   []any{claimant.String(), came, q.claimLife(), publish, at.Grant},
	}
}

// Withdraw implements hold.Asked.
func (q *Queue) Withdraw(claimant hold.Owner) *conn.Call {
	return &conn.Call{
		Script: withdrawScript,
		Keys:   []string{q.space().NewestAt(q.Key())},
		Args:   []any{claimant.String(), q.claimLife()},
	}
}

// claimLife returns how long Redis keeps who are the newest, in ms: as long as a token that has an end.
func (q *Queue) claimLife() int64 { return hold.RemadeLife(q.tokenLife) }
