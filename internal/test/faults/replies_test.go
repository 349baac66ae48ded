// Replies get lost after Redis has run the script, and requests come twice, and still all counts,
// verdicts and tokens are right.

package faults

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// isScript says whether a command runs a script.
func isScript(c redistest.Command) bool { return c.Name == "EVALSHA" || c.Name == "EVAL" }

// everyScript returns a rule that gives a fault to every k-th script, and takes the faults in turn.
func everyScript(k int64, faults ...redistest.Fault) func(redistest.Command) redistest.Fault {
	var n atomic.Int64
	return func(c redistest.Command) redistest.Fault {
		if !isScript(c) {
			return redistest.Pass
		}
		if slices.Contains(faults, redistest.Fault(redistest.Duplicate)) && slices.Contains(c.Args, "PUBLISH") {
			return redistest.Pass // a release that is sent twice cannot be told from a loss
		}
		if i := n.Add(1); i%k == 0 {
			return faults[(i/k)%int64(len(faults))]
		}
		return redistest.Pass
	}
}

// repeat returns n copies of a fault.
func repeat(n int, f redistest.Fault) []redistest.Fault {
	faults := make([]redistest.Fault, n)
	for i := range faults {
		faults[i] = f
	}
	return faults
}

func TestLostReplies(t *testing.T) {
	for _, tc := range []struct {
		name   string
		every  int64
		faults []redistest.Fault
		full   int
	}{
		// A lost reply takes with it the replies behind it in its pipeline. With more faults, some
		// Release would not get through in the time that it has.
		{"closed after execution", 20, append(repeat(9, redistest.CloseAfterExec), redistest.Silence), 10_000},
		{"sent twice", 3, repeat(1, redistest.Duplicate), 2_000},
		{"half a reply, or none of the request", 7, []redistest.Fault{redistest.HalfReply, redistest.DropBefore}, 2_000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := redistest.Server(t)
			clienttest.LeaveNothing(t, s.Admin())
			proxy := redistest.Proxy(t, s.Addr())
			c := clienttest.OpenClient(t, proxy.Client(t, func(o *redis.Options) { o.ReadTimeout = 250 * time.Millisecond }))
			proxy.OnCommand(everyScript(tc.every, tc.faults...))

			operations := redistest.CountOfWork(t, tc.full)
			const locks = 40
			records := make([]record, locks)
			started := time.Now()
			clienttest.Each(operations, 100, func(i int) {
				name := fmt.Sprintf("lost%d", i%locks)
				if err := nestedPair(t, c, s.Admin(), name, &records[i%locks]); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			clienttest.Figure(t, "replies lost (%s): %d pairs with a nested pair in each, %d faults, all counts, verdicts and tokens right, %v",
				tc.name, operations, proxy.Injected(), time.Since(started).Round(time.Millisecond))
		})
	}
}

// record is the last token of a name.
type record struct {
	mu   sync.Mutex
	last int64
}

func (r *record) note(token int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token <= r.last {
		return fmt.Errorf("token %d after %d", token, r.last)
	}
	r.last = token
	return nil
}

// nestedPair locks, re-enters, releases twice, and looks at the count in Redis
// after each step.
func nestedPair(t testing.TB, c *holdfast.Client, direct *redis.Client, name string, r *record) error {
	ctx := clienttest.Generous(t)
	count := func(l *holdfast.Lease, want int) error {
		got, err := direct.HGet(ctx, name, l.Owner().String()).Result()
		if errors.Is(err, redis.Nil) {
			got, err = "0", nil
		}
		if err != nil {
			return err
		}
		if got != strconv.Itoa(want) {
			return fmt.Errorf("the count is %s, want %d", got, want)
		}
		return nil
	}
	m := c.Mutex(name, holdfast.Cohort(0, 0)) // a lock that is passed on keeps its count in Redis
	outer, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	inner, err := m.Lock(outer.Context(ctx))
	if err != nil {
		return errors.Join(err, outer.Release(ctx))
	}
	second := func(l *holdfast.Lease) error {
		if err := l.Release(ctx); !errors.Is(err, holdfast.ErrReleased) {
			return fmt.Errorf("a second Release = %v, want ErrReleased", err)
		}
		return nil
	}
	return errors.Join(
		r.note(outer.Token()),
		count(outer, 2),
		inner.Release(ctx),
		count(outer, 1),
		second(inner),
		outer.Release(ctx),
		count(outer, 0),
		second(outer),
	)
}
