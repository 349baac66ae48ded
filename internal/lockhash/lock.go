// What Mutex and FairMutex have in common: a lock with a queue, and with the name that a program uses.

package lockhash

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
)

// Lock is a Queue with a name.
type Lock struct {
	Queue
	name string
	err  error // why it cannot be used
}

// NewLock returns the lock of that name, which is at key in Redis. If something is wrong with the
// arguments, or with the Engine, Usable says so.
func NewLock(e *engine.Engine, name, key string, rules *Rules) Lock {
	l := Lock{Queue: Queue{Hash: Hash(key), Engine: e, Rules: rules}, name: name}
	switch {
	case e.Broken() != nil:
		l.err = e.Broken()
	case rules.tokenLife == 0:
		l.err = e.Keys.CheckJava(key)
	default:
		l.err = e.Keys.Check(key)
	}
	return l
}

// Kind implements hold.Resource.
func (l *Lock) Kind() string { return l.kind }

// Name implements hold.Resource.
func (l *Lock) Name() string { return l.name }

// Place returns where the lock is, for lease.Placed.
func (l *Lock) Place() string { return hold.PlaceOf(l.Engine, l.Key()) }

// Usable returns nil, or why the operation cannot be done on this lock.
func (l *Lock) Usable(op string) error {
	if l.err == nil {
		return nil
	}
	return l.Failed(op, l.err)
}

// Failed returns the error of an operation on this lock.
func (l *Lock) Failed(op string, err error) error {
	return errs.Call(op, l.kind, l.name, err)
}

// Run runs a call of that operation.
func (l *Lock) Run(ctx context.Context, op string, call *conn.Call) error {
	if err := l.Usable(op); err != nil {
		return err
	}
	if err := l.Engine.Conn.Run(ctx, call); err != nil {
		return l.Failed(op, err)
	}
	return nil
}

// Query asks Redis for the state.
func (l *Lock) Query(ctx context.Context) (State, error) {
	call := l.State()
	if err := l.Run(ctx, "query", call); err != nil {
		return State{}, err
	}
	return ParseState(call), nil
}

// Holder asks Redis for the holder. It returns the zero Owner if nobody holds the lock.
func (l *Lock) Holder(ctx context.Context) (hold.Owner, error) {
	s, err := l.Query(ctx)
	if err != nil {
		return hold.Owner{}, err
	}
	return s.Holder()
}

// ForceRelease takes the lock from its holder, if that is meant, by the lock's own release, and ends the
// leases of this Client on it. It reports whether such a holder held it. If the hash has a field that is not a
// holder, it is no lock: ForceRelease leaves it as it is, and the error matches errs.WrongType.
func (l *Lock) ForceRelease(ctx context.Context, meant func(id string) bool) (held bool, err error) {
	const op = "force release"
	state := l.State()
	if err := l.Run(ctx, op, state); err != nil {
		return false, err
	}
	s := ParseState(state)
	if !s.Locked {
		return false, nil
	}
	if field, found := s.foreign(); found {
		return false, l.Failed(op, fmt.Errorf("%w: a hash stands there, and its field %q is not a holder's", errs.WrongType, cut(field)))
	}
	publish, err := l.Engine.Conn.PublishCommand(ctx)
	if err != nil {
		return false, l.Failed(op, err)
	}
	for _, holder := range s.Holders {
		if !meant(holder.ID) {
			continue
		}
		// By its id: if the reply is lost and the call is sent again, a holder that got the lock in
		// the meantime keeps it.
		if err := l.Run(ctx, op, l.ReleaseOf(holder.ID, publish)); err != nil {
			return false, err
		}
		l.Engine.EndHeld(l.Key(), holder.ID, errs.Lost)
		l.notify(ctx, holder.ID, publish)
		held = true
	}
	return held, nil
}

// Notices implements hold.Noticed.
func (l *Lock) Notices() string { return l.At().GrantTo(l.Engine.Client()) }

// notify makes the Client of a former holder look at once, if that is another Client and listens. If it fails, that
// Client finds out by its next renewal.
func (l *Lock) notify(ctx context.Context, holder, publish string) {
	client, _, _ := strings.Cut(holder, ":")
	if _, err := hold.ParseOwner(holder); err != nil || client == l.Engine.Client() {
		return
	}
	_ = l.Engine.Conn.Run(ctx, &conn.Call{Script: noticeScript, Keys: []string{l.Key()}, Args: []any{publish, l.At().GrantTo(client)}})
}
