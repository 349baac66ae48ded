// The kinds of synchronizers: how a lane takes each, and the rule that it must keep.

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// rule is the rule of an object: the amounts held at once must never exceed its capacity.
type rule struct {
	capacity int
	fenced   bool // grants have tokens
	owned    bool // grants have leases
	nameless bool // a grant does not say who its owner is
	undated  bool // nor when its lease ends
	hasty    bool // a grant does not wait for replicas, though its lease may
}

const (
	everybody = 1000 // the amount that a writer takes of a read/write lock; a reader takes 1
	permits   = 3
)

var rules = map[string]rule{
	"mutex":    {capacity: 1, fenced: true, owned: true},
	"fair":     {capacity: 1, fenced: true, owned: true},
	"rw":       {capacity: everybody, fenced: true, owned: true},
	"stripe":   {capacity: 1, fenced: true, owned: true},
	"multi":    {capacity: 1, fenced: true, owned: true},
	"permits":  {capacity: permits, owned: true},
	"sem":      {capacity: permits},
	"leader":   {capacity: 1, fenced: true, owned: true, nameless: true},
	"once":     {capacity: 1, fenced: true, owned: true, nameless: true, undated: true},
	"shards":   {capacity: 1, fenced: true, owned: true, nameless: true, undated: true, hasty: true},
	"latch":    {},
	"barrier":  {owned: true},
	"quorum":   {capacity: 1, fenced: true, owned: true},
	"quorumrw": {capacity: everybody, fenced: true, owned: true},
}

// kindsOf returns the kinds that exist on a topology.
func kindsOf(topology string) []string {
	switch topology {
	case "single", "sentinel", "cluster":
		return []string{"mutex", "fair", "rw", "stripe", "multi", "permits", "sem", "latch", "leader", "once", "barrier", "shards"}
	case "quorum":
		return []string{"quorum", "quorumrw"}
	}
	return nil
}

// kindOf returns the kind of an object by its name.
func kindOf(object string) string {
	kind, _, _ := strings.Cut(object, "-")
	return kind
}

func ruleOf(object string) rule { return rules[kindOf(object)] }

// grant is the result of Lock, for every kind.
type grant interface {
	Context(parent context.Context) context.Context
	Deadline() time.Time // zero: it has none, or no longer
	Release(ctx context.Context) error
}

// ownerOf returns the owner of the grant in Redis, if the grant is one lease; "" otherwise.
func ownerOf(g grant) string {
	if l, ok := g.(*holdfast.Lease); ok {
		return l.Owner().String()
	}
	return ""
}

// shortOwner returns enough of an owner to tell it from others. The whole owner is a secret.
func shortOwner(text string) string {
	owner, err := holdfast.ParseOwner(text)
	if err != nil {
		return "somebody"
	}
	return owner.Short()
}

// lockFunc takes an object; nested in ctx it re-enters.
type lockFunc func(ctx context.Context, try bool) (grant, int64, error)

// taking is one way to take an object.
type taking struct {
	amount  int
	lock    lockFunc
	nests   bool
	renewed bool
}

// ways takes objects with the Clients of one process.
type ways struct {
	clients []*holdfast.Client // one, or one for each server of a quorum
	lease   time.Duration
}

// draw decides at random whether a lease is renewed: most are.
func (w ways) draw(r *rand.Rand) (renewed bool) { return r.IntN(8) != 0 }

// renews reports whether every lease of a kind is renewed.
func renews(kind string) bool { return kind == "leader" || kind == "once" }

// take chooses at random one of the ways to take an object.
func (w ways) take(object string, renewed bool, r *rand.Rand) taking {
	renewed = renewed || renews(kindOf(object))
	how := holdfast.Renewed(w.lease)
	if !renewed {
		how = holdfast.Fixed(w.lease)
	}
	taking := w.ofKind(object, how, r)
	taking.renewed = renewed && ruleOf(object).owned
	return taking
}

func (w ways) ofKind(object string, how holdfast.LeaseOption, r *rand.Rand) taking {
	c := w.clients[0]
	reading := r.IntN(2) == 0
	switch kindOf(object) {
	case "mutex":
		return ofLocker(1, c.Mutex(object, how, holdfast.Cohort(1000, crowdCohort)), true)
	case "fair":
		return ofLocker(1, c.FairMutex(object, how), true)
	case "rw":
		if reading {
			return ofLocker(1, c.RWMutex(object, how).RLocker(), true)
		}
		return ofLocker(everybody, c.RWMutex(object, how), true)
	case "stripe":
		return ofLocker(1, c.Striped(object, 2, how).At(0), true)
	case "multi":
		return w.multi(object, how)
	case "permits":
		n := 1 + r.IntN(2)
		return ofLocker(n, c.PermitSemaphore(object, how).Locker(n), false)
	case "sem":
		return ofSemaphore(1+r.IntN(2), c, object)
	case "leader":
		return ofElection(w.election(object, r))
	case "quorum":
		return w.quorum(1, object, func(c *holdfast.Client) holdfast.Locker { return c.Mutex(object, how) })
	case "quorumrw":
		if reading {
			return w.quorum(1, object, func(c *holdfast.Client) holdfast.Locker { return c.RWMutex(object, how).RLocker() })
		}
		return w.quorum(everybody, object, func(c *holdfast.Client) holdfast.Locker { return c.RWMutex(object, how) })
	}
	panic("no kind is called " + kindOf(object))
}

func ofLocker(amount int, l holdfast.Locker, nests bool) taking {
	return taking{amount: amount, nests: nests, lock: func(ctx context.Context, try bool) (grant, int64, error) {
		lock := l.Lock
		if try {
			lock = l.TryLock
		}
		got, err := lock(ctx)
		if err != nil {
			return nil, 0, err
		}
		return got, got.Token(), nil
	}}
}

// multi is two mutexes; its fence is that of the first.
func (w ways) multi(object string, how holdfast.LeaseOption) taking {
	m := holdfast.NewMultiLock(w.clients[0].Mutex(object+".a", how), w.clients[0].Mutex(object+".b", how))
	return taking{amount: 1, nests: true, lock: func(ctx context.Context, try bool) (grant, int64, error) {
		lock := m.Lock
		if try {
			lock = m.TryLock
		}
		got, err := lock(ctx)
		if err != nil {
			return nil, 0, err
		}
		return got, got.Tokens()[0], nil
	}}
}

func (w ways) quorum(amount int, object string, member func(*holdfast.Client) holdfast.Locker) taking {
	q := holdfast.NewQuorumOf(object, w.clients, w.lease, member)
	return taking{amount: amount, nests: true, lock: func(ctx context.Context, try bool) (grant, int64, error) {
		lock := q.Lock
		if try {
			lock = q.TryLock
		}
		got, err := lock(ctx)
		if err != nil {
			return nil, 0, err
		}
		return got, got.Token(), nil
	}}
}

// taken is a grant of permits of a semaphore without leases.
type taken struct {
	amount  int
	release func(ctx context.Context, n int) error
}

func (t taken) Context(parent context.Context) context.Context { return parent }
func (t taken) Deadline() time.Time                            { return time.Time{} }
func (t taken) Release(ctx context.Context) error              { return t.release(ctx, t.amount) }

func ofSemaphore(n int, c *holdfast.Client, object string) taking {
	s := c.Semaphore(object)
	return taking{amount: n, lock: func(ctx context.Context, try bool) (grant, int64, error) {
		acquire := s.Acquire
		if try {
			acquire = s.TryAcquire
		}
		if err := acquire(ctx, n); err != nil {
			return nil, 0, err
		}
		return taken{n, s.Release}, 0, nil
	}}
}

// prepare sets the permits of a semaphore, once, and again after a loss of the semaphore.
func (w ways) prepare(ctx context.Context, object string) error {
	var err error
	switch kindOf(object) {
	case "permits":
		_, err = w.clients[0].PermitSemaphore(object).TrySetPermits(ctx, permits)
	case "sem":
		_, err = w.clients[0].Semaphore(object).TrySetPermits(ctx, permits)
	}
	return err
}

// classOf returns a short name for an error.
func classOf(err error) string {
	for _, class := range []struct {
		err  error
		name string
	}{
		{nil, ""},
		{holdfast.ErrNotReplicated, "not replicated"},
		{holdfast.ErrNoQuorum, "no quorum"},
		{holdfast.ErrNoPermits, noPermits},
		{holdfast.ErrLost, lost},
		{holdfast.ErrResigned, resigned},
		{holdfast.ErrUnknown, unknown},
		{holdfast.ErrBusy, "busy"},
		{holdfast.ErrDenied, denied},
		{context.Canceled, "cancelled"},
		{context.DeadlineExceeded, "no answer in time"},
		{holdfast.ErrUnavailable, "no answer in time"},
	} {
		if errors.Is(err, class.err) {
			return class.name
		}
	}
	return fmt.Sprintf("error: %v", err)
}

// endingOf returns how a hold ended, by Release's error. All errors that mean that Redis was
// not reached give the same ending.
func endingOf(err error) string {
	switch {
	case err == nil:
		return released
	case errors.Is(err, holdfast.ErrLost):
		return lost
	case errors.Is(err, holdfast.ErrResigned):
		return resigned
	case errors.Is(err, holdfast.ErrReleased), errors.Is(err, holdfast.ErrClosed), errors.Is(err, holdfast.ErrBadArgument):
		return unforeseen + err.Error()
	}
	return unknown
}

const (
	noPermits  = "no permits set"
	unknown    = "unknown"
	denied     = "denied"
	unforeseen = "error: " // the prefix of the classes of errors that are not expected
)
