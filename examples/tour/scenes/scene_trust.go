// These scenes are about the rights of a holder and of others: owners, force, the fence.

package scenes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
)

func force(ctx context.Context, s *stage) error {
	s.note("Only who has the Lease can release it. An id that is made up is nobody's. But an")
	s.note("operator who knows that the holder hangs can take the lock from it.")
	name := s.name("deploy")
	a, err := s.A.Mutex(name, holdfast.Renewed(time.Second)).Lock(ctx)
	if err != nil {
		return err
	}
	defer a.Release(ctx)
	held := a.Context(ctx)
	before, err := s.show(ctx, name)
	if err != nil {
		return err
	}

	operator := s.client(s.Redis)
	defer operator.Close()
	stranger, err := holdfast.ParseOwner(uuid.NewString() + ":1")
	if err != nil {
		return err
	}
	_, err = operator.Mutex(name).Attach(ctx, stranger)
	s.says("C", "takes over, to release it, as an owner that it made up: %v", err)
	s.check("that is refused with ErrLost", errors.Is(err, holdfast.ErrLost))
	after, err := s.look(ctx, name)
	if err != nil {
		return err
	}
	s.check("A's lock is untouched", maps.Equal(after.holders, before.holders) && after.ttl > 0)

	next := later(ctx, s.B.Mutex(name).Lock)
	if err := s.waiters(ctx, name); err != nil {
		return err
	}
	was, err := operator.Mutex(name).ForceRelease(ctx)
	if err != nil {
		return err
	}
	s.says("C", "ForceRelease: the lock was held: %t", was)
	b := <-next
	if b.err != nil {
		return b.err
	}
	defer b.lease.Release(ctx)
	s.says("B", "has it")
	s.check("the waiter got what was taken from A", was && b.lease.Token() > a.Token())

	<-held.Done()
	s.says("A", "is told by its next renewal: %v", context.Cause(held))
	s.check("A's context ends with ErrLost", errors.Is(context.Cause(held), holdfast.ErrLost))
	err = a.Release(ctx)
	s.check("its release says ErrLost, and B keeps the lock", errors.Is(err, holdfast.ErrLost) && b.lease.Err() == nil)
	if err := b.lease.Release(ctx); err != nil {
		return err
	}
	was, err = operator.Mutex(name).ForceRelease(ctx)
	s.check("to force a free lock does nothing, and says so", !was)
	return err
}

// account is something worth protecting, with a fence: it remembers the greatest token that it has
// seen, and refuses a smaller token. A database does this with a column, and "... WHERE token <=
// $1".
type account struct {
	fence   fence.Guard
	balance int
}

func (a *account) set(balance int, token int64) error {
	return a.fence.Do("balance", token, func() error {
		a.balance = balance
		return nil
	})
}

func fencing(ctx context.Context, s *stage) error {
	s.note("A's machine stops for 800 ms, with a lease of 500 ms, just before it writes. No lock")
	s.note("can help there: A does not look. The resource can, by the token of each grant.")
	name := s.name("account:8")
	var books account
	a, err := s.A.Mutex(name, holdfast.Fixed(500*time.Millisecond)).Lock(ctx)
	if err != nil {
		return err
	}
	defer a.Release(ctx)
	s.says("A", "has it, token %d, and stands still", a.Token())
	awake := time.Now().Add(800 * time.Millisecond)

	b, err := s.B.Mutex(name).Lock(ctx)
	if err != nil {
		return err
	}
	defer b.Release(ctx)
	err = books.set(200, b.Token())
	s.says("B", "has it, token %d, and writes 200: %v", b.Token(), result(err))
	s.check("the holder's write is taken", err == nil)

	if err := sleep(ctx, time.Until(awake)); err != nil {
		return err
	}
	err = books.set(100, a.Token())
	s.says("A", "wakes, writes 100 with its token of then: %v", result(err))
	s.check("the write of the one who overslept is refused", errors.Is(err, fence.ErrStale) && books.balance == 200)
	s.check(fmt.Sprintf("since its token is smaller, by %d", b.Token()-a.Token()), a.Token() < b.Token())
	return nil
}

func result(err error) string {
	if err != nil {
		return err.Error()
	}
	return "done"
}

func handOver(ctx context.Context, s *stage) error {
	s.note("A hold can outlive the process that began it: A detaches and gives B its Owner, by")
	s.note("whatever way, as text. The lock is held all the while.")
	name := s.name("migration")
	a, err := s.A.Mutex(name).Lock(ctx)
	if err != nil {
		return err
	}
	defer a.Release(ctx)
	owner, err := a.Detach(ctx)
	if err != nil {
		return err
	}
	text := owner.String()
	s.says("A", "detaches; its Owner, for B only: %s", text)
	if _, err := s.show(ctx, name); err != nil {
		return err
	}
	s.check("A's lease counts as released", errors.Is(a.Err(), holdfast.ErrReleased))
	_, err = s.A.Mutex(name).TryLock(ctx)
	s.check("the lock is still held", errors.Is(err, holdfast.ErrBusy))

	parsed, err := holdfast.ParseOwner(text)
	if err != nil {
		return err
	}
	b, err := s.B.Mutex(name).Attach(ctx, parsed)
	if err != nil {
		return err
	}
	defer b.Release(ctx)
	s.says("B", "attaches")
	now, err := s.show(ctx, name)
	if err != nil {
		return err
	}
	s.check("it is B's now, under an owner of its own", now.holders[b.Owner().String()] == "1" && len(now.holders) == 1)
	s.check("and has kept its token", b.Token() == a.Token())

	_, err = s.A.Mutex(name).Attach(ctx, parsed)
	s.says("A", "attaches with the same Owner: %v", err)
	s.check("only one gets it: ErrLost", errors.Is(err, holdfast.ErrLost))
	return b.Release(ctx)
}
