// Stripes: one name divided into a fixed number of locks, with keys spread over them.

package rlock

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/lease"
)

// MaxStripes is the largest number of stripes that a name may be divided into.
const MaxStripes = 1 << 16

// Striped is one name that is divided into a fixed number of locks, its stripes. Use it for many keys that
// do not all have to exclude each other. Two keys exclude each other only if they have the same stripe.
//
// Stripe i of the name "stock" is the lock that Mutex would make for the name "stock:<i>". In every
// process, a key has the stripe FNV-1a(key) mod n. FNV-1a is the 64-bit hash of the key's bytes.
//
// The number of stripes is stored in Redis on first use. If a program uses another number, every call fails
// with lease.ErrBadArgument, because a key would otherwise have two locks. A Striped asks Redis for the
// number before its first Lock. Later it asks again when it locks, at most once a minute. If the number was
// deleted, or lost with Redis's data, the next Striped that asks writes its own number. A process that then
// finds another number no longer locks. To change the number, stop all processes that use the name, and
// delete the key holdfast_stripes:<name>.
type Striped struct {
	engine  *engine.Engine
	name    string
	stripes []*Mutex
	record  string // the key of the stored number
	made    time.Time
	agreed  atomic.Int64 // how old s was when Redis was last asked; 0: it must be asked
	err     error
}

// askAgain is how long a Striped relies on Redis's answer that it has the same number. The key may
// be lost or deleted, and other processes may then agree on another number.
const askAgain = time.Minute

// NewStriped returns the n stripes of that name. mapped maps the names of the stripes to names in Redis.
// NewStriped does no I/O. If an argument is wrong, every call returns the error.
func NewStriped(e *engine.Engine, name string, n int, mapped func(string) string, settings *hold.Settings) *Striped {
	s := &Striped{engine: e, name: name, made: time.Now()}
	switch {
	case e.Broken() != nil:
		s.err = e.Broken()
	case n < 1 || n > MaxStripes:
		s.err = fmt.Errorf("%d stripes, want 1 to %d: %w", n, MaxStripes, errs.BadArgument)
	default:
		s.record, s.err = e.Keys.ForStripes(mapped(name))
	}
	if s.err != nil {
		s.stripes = []*Mutex{New(engine.Broken(s.err), name, name, settings)}
		return s
	}
	s.stripes = make([]*Mutex, n)
	for i := range s.stripes {
		stripe := name + ":" + strconv.Itoa(i)
		s.stripes[i] = New(e, stripe, mapped(stripe), settings)
	}
	return s
}

// For returns the stripe of key.
func (s *Striped) For(key string) *Stripe {
	n := s.Len()
	if n == 0 {
		return s.At(0)
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(key))
	return s.At(int(hash.Sum64() % uint64(n)))
}

// At returns stripe i, counted from 0. Use it if your program chooses the stripes by a rule of its own,
// such as id % 16, for example because a Java program has the same rule. At panics if there is no stripe i.
func (s *Striped) At(i int) *Stripe {
	s = engine.Made(s)
	switch {
	case len(s.stripes) == 0: // no Client has made it
		return &Stripe{striped: s}
	case s.err != nil:
		i = 0
	}
	return &Stripe{striped: s, Mutex: s.stripes[i]}
}

// Len returns the number of stripes.
func (s *Striped) Len() int { return len(engine.Made(s).stripes) }

// Stripe is one lock of a Striped. It is like a Mutex, but checks the number of stripes before its first
// Lock.
type Stripe struct {
	*Mutex
	striped *Striped
}

var _ lease.Locker = (*Stripe)(nil)

// Lock is the same as Mutex.Lock.
func (s *Stripe) Lock(ctx context.Context) (*lease.Lease, error) {
	if err := s.striped.agree(ctx); err != nil {
		return nil, s.lock().Failed("lock", errs.Ended(ctx, err))
	}
	return s.Mutex.Lock(ctx)
}

// TryLock is the same as Mutex.TryLock.
func (s *Stripe) TryLock(ctx context.Context) (*lease.Lease, error) {
	bounded, cancel := engine.Bounded(ctx)
	defer cancel()
	if err := s.striped.agree(bounded); err != nil {
		return nil, s.lock().Failed("try lock", errs.Ended(bounded, err))
	}
	return s.Mutex.TryLock(ctx)
}

func (s *Striped) usable() error {
	s = engine.Made(s)
	return engine.Usable(s.engine, s.err)
}

// agree makes sure that all processes mean the same number of stripes: before the first Lock, and
// then in the background from time to time. If ctx has ended, it agrees on nothing, and Lock
// returns the error.
func (s *Striped) agree(ctx context.Context) error {
	if err := s.usable(); err != nil || ctx.Err() != nil {
		return err
	}
	last, now := s.agreed.Load(), time.Since(s.made)
	switch {
	case last == 0:
		return s.ask(ctx)
	case now-time.Duration(last) >= askAgain && s.agreed.CompareAndSwap(last, int64(now)):
		s.engine.Background(func() {
			ctx, cancel := context.WithTimeout(context.Background(), askAgain)
			defer cancel()
			if err := s.ask(ctx); errors.Is(err, errs.BadArgument) {
				s.agreed.Store(0) // each Lock asks, and says so
			}
		})
	}
	return nil
}

// ask asks Redis for the number of stripes. If none is stored, the script stores this one.
func (s *Striped) ask(ctx context.Context) error {
	call := &conn.Call{Script: stripesScript, Keys: []string{s.record}, Args: []any{len(s.stripes)}}
	if err := s.engine.Conn.Run(ctx, call); err != nil {
		return err
	}
	if stored := call.Result(); stored != int64(len(s.stripes)) {
		return fmt.Errorf("%d stripes, but %s is cut into %d: %w", len(s.stripes), errs.Quote(s.name), stored, errs.BadArgument)
	}
	s.agreed.Store(max(1, int64(time.Since(s.made))))
	return nil
}
