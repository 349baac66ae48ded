// Package programs plays scenarios that generators make, in virtual time. Each has an oracle: a model
// that says what may happen. The package has no code except tests.
package programs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/lockertest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// latest is how late a request or a reply may be at the most. If a renewal runs late, its lease
// ends that much earlier here, until the next renewal.
const latest = 2500 * time.Millisecond

// kindOf returns the kind of lock of that name.
func kindOf(name string) lockertest.Kind {
	return lockertest.Kinds[slices.IndexFunc(lockertest.Kinds, func(k lockertest.Kind) bool { return k.Name == name })]
}

type actions = map[string]func(*rapid.T)

// some draws some of the actions: two, or about half of them. With fewer actions a program goes deeper into each.
func some(rt *rapid.T, all actions) actions {
	names := rapid.Permutation(slices.Sorted(maps.Keys(all))).Draw(rt, "actions")
	if rapid.Bool().Draw(rt, "two") {
		names = names[:2]
	} else {
		names = names[:rapid.IntRange(0, len(names)).Draw(rt, "how many")]
	}
	chosen := actions{}
	for _, name := range names {
		chosen[name] = all[name]
	}
	return chosen
}

// story is what has happened in a program.
type story struct {
	w    *world.World
	born time.Duration

	mu    sync.Mutex
	lines []string
	felt  time.Duration // until then something was wrong with the network, or with Redis
}

func (s *story) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf("%v: ", s.w.Now()-s.born)+fmt.Sprintf(format, args...))
}

// fatal fails the program, and tells its story.
func (s *story) fatal(rt *rapid.T, format string, args ...any) {
	s.note(format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	rt.Fatalf("%s", strings.Join(s.lines, "\n"))
}

// feel notes that something is wrong with the network, or with Redis, for d.
func (s *story) feel(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.felt = max(s.felt, s.w.Now()+d)
}

// calm returns when something was wrong last.
func (s *story) calm() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.felt
}

// call is a call on a goroutine of its own.
type call struct {
	what      string
	began, at time.Duration // when it began, and when it returned
	cancel    context.CancelFunc
	done      chan struct{}
	err       error
}

// begin runs f on a goroutine, with a context of its own.
func (s *story) begin(c *call, what string, parent context.Context, limit time.Duration, f func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(parent, limit)
	*c = call{what: what, began: s.w.Now(), cancel: cancel, done: make(chan struct{})}
	s.note("%s", what)
	go func() {
		defer close(c.done)
		c.err = f(ctx)
		c.at = s.w.Now()
	}()
	synctest.Wait()
}

// over reports whether the call has returned.
func (c *call) over() bool {
	select {
	case <-c.done:
		c.cancel()
		return true
	default:
		return false
	}
}

// may reports whether a call may end with that error.
func may(err error) bool {
	return slices.ContainsFunc([]error{
		holdfast.ErrBusy, holdfast.ErrLost, holdfast.ErrExpired, holdfast.ErrReleased, holdfast.ErrUnavailable, holdfast.ErrUnknown,
		context.Canceled, context.DeadlineExceeded,
	}, func(target error) bool { return errors.Is(err, target) })
}
