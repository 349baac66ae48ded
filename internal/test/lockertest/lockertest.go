// Package lockertest is one suite of tests that every lock must pass, whatever its kind and whatever Redis is behind
// it. The suite runs on each kind of lock over each topology. Only _test.go files import it.
//
// A case uses only lease.Locker, a few processes and the clock. The tests of a kind's own package check what that kind
// promises beyond that. On real servers a case judges outcomes alone, and no lease that must last is shorter than 10 s;
// in virtual time it also judges when they come.
package lockertest

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Subject is a kind of lock on a Redis.
type Subject struct {
	Kind
	Redis
}

// Kind is a kind of lock.
type Kind struct {
	// Name is the name of the tests, and the beginning of the names of the locks.
	Name string
	// Telemetry is the value of holdfast.kind.
	Telemetry string
	// Locker makes the lock with that name in that process.
	Locker func(c *holdfast.Client, name string, options ...holdfast.LeaseOption) holdfast.Locker
	// Rival makes the lock that this lock excludes, if this lock does not exclude itself: for the
	// read side of a lock, the write side. The default is Locker.
	Rival func(c *holdfast.Client, name string, options ...holdfast.LeaseOption) holdfast.Locker
	// Prepare does, once, what a name needs before it can be locked. It may be nil.
	Prepare func(ctx context.Context, c *holdfast.Client, name string) error
	// Options are those of each Client.
	Options []holdfast.Option
	// Keeps are the prefixes of the keys that stay in Redis when there is no holder and no waiter.
	Keeps []string

	Fenced    bool // tokens grow from hold to hold
	Reentrant bool // the context of a lease re-enters
	Stays     bool // AtLeast works
	Shared    bool // many can hold it at a time; then there is a Rival
}

// Redis is a topology. Many kinds may share it at the same time.
type Redis struct {
	// Virtual says that each case runs in a synctest bubble.
	Virtual bool
	// Slots bounds how many cases run at a time. If it is nil, one case runs at a time.
	Slots chan struct{}
	// Each case calls Open, inside its bubble if it has one.
	Open func(t testing.TB) Site
}

// Site is a Redis as one case sees it.
type Site struct {
	// Process makes a Client on a go-redis client of its own. The suite closes the Client.
	Process func(options ...holdfast.Option) *holdfast.Client
	// Onlooker reaches the same Redis, with all rights.
	Onlooker redis.UniversalClient
}

// testCase is one thing that every lock, or every lock of a certain sort, must do.
type testCase struct {
	name string
	of   func(Subject) bool // nil: all
	run  func(w *stage)
}

func reentrant(s Subject) bool    { return s.Reentrant }
func notReentrant(s Subject) bool { return !s.Reentrant }
func shared(s Subject) bool       { return s.Shared }
func stays(s Subject) bool        { return s.Stays }

// virtual is of what a Client does alone, whatever Redis it asks: one such Redis is enough.
func virtual(s Subject) bool { return s.Redis.Virtual }

var cases = []testCase{
	{"excludes", nil, excludes},
	{"is shared", shared, isShared},
	{"counter outside", nil, counterOutside},
	{"release wakes", nil, releaseWakes},
	{"re-entry", reentrant, reEntry},
	{"no re-entry", notReentrant, noReEntry},
	{"renewed outlives its lease", nil, renewedOutlivesItsLease},
	{"what has ended touches nobody", nil, endedTouchesNobody},
	{"at least", nil, atLeast},
	{"taken by force", stays, takenByForce},
	{"superseded", stays, superseded},

	{"waits end", virtual, waitsEnd},
	{"causes", virtual, causes},
	{"extend", virtual, extend},
	{"max hold", virtual, maxHold},
	{"shutdown", virtual, shutdown},
	{"close", virtual, closing},
	{"broken arguments", virtual, brokenArguments},
	{"SyncLocker", virtual, syncLocker},
	{"telemetry", virtual, telemetry},
}

// Run runs each case of the suite as a subtest.
func Run(t *testing.T, s Subject) { runCases(t, s, cases) }

// runCases runs those cases.
func runCases(t *testing.T, s Subject, cases []testCase) {
	if s.Slots == nil {
		s.Slots = make(chan struct{}, 1)
	}
	// A case spends most of its time waiting, so more cases run at a time than t.Parallel would
	// allow: t.Run may be called concurrently.
	var running sync.WaitGroup
	for _, c := range cases {
		if c.of != nil && !c.of(s) {
			continue
		}
		s.Slots <- struct{}{}
		running.Go(func() {
			defer func() { <-s.Slots }()
			t.Run(c.name, func(t *testing.T) {
				if s.Redis.Virtual {
					redistest.Bubble(t, func(t *testing.T) { s.play(t, c) })
				} else {
					s.play(t, c)
				}
			})
		})
	}
	running.Wait()
}

// play runs one case, with a name of its own.
func (s Subject) play(t *testing.T, c testCase) {
	w := &stage{TB: t, s: s, site: s.Open(t), name: "orders:" + s.Kind.Name + ":" + strings.ReplaceAll(c.name, " ", "-")}
	defer w.nothingLeft() // runs last, and also after a Fatal
	defer w.closeAll()
	w.prepare(w.name)
	c.run(w)
}
