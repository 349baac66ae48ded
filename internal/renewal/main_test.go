// These tests share a task, a sender, and a scheduler in virtual time. Each test sets how they behave.

package renewal

import (
	"cmp"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// play runs test in virtual time, with a scheduler that renews through r.
func play(t *testing.T, test func(t *testing.T, s *Scheduler, r *fakeSender)) {
	t.Helper()
	redistest.Bubble(t, func(t *testing.T) {
		r := &fakeSender{
			known: func(string) string { return "" },
			node:  func(_ context.Context, key string) (string, error) { return key, nil },
			send:  func(context.Context, string, []Task, int) {},
			fail:  func(Task, error) {},
		}
		s := New(r)
		defer s.Close()
		test(t, s, r)
	})
}

// pass lets d go by, and whatever falls due in it end.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// fakeTask is a Task. A test sets the fields that matter to it.
type fakeTask struct {
	entry   Entry
	key     string
	ends    time.Time     // its deadline
	timeout time.Duration // of one try; 0: 5 s
	tick    func(now time.Time) (time.Time, bool)
	suspect func(now time.Time) (time.Time, bool)
}

func (t *fakeTask) Entry() *Entry { return &t.entry }
func (t *fakeTask) Key() string   { return t.key }

func (t *fakeTask) Urgency() (deadline time.Time, try time.Duration) {
	return t.ends, cmp.Or(t.timeout, 5*time.Second)
}

func (t *fakeTask) Tick(now time.Time) (time.Time, bool)    { return t.tick(now) }
func (t *fakeTask) Suspect(now time.Time) (time.Time, bool) { return t.suspect(now) }

// renewOnce is the tick of a task that asks for one renewal.
func renewOnce(time.Time) (time.Time, bool) { return time.Time{}, true }

// fakeSender is a Sender. Unless a test says otherwise, the node of a key is the key itself, and
// that node is not known before the scheduler asks for it.
type fakeSender struct {
	known func(key string) string
	node  func(ctx context.Context, key string) (string, error)
	send  func(ctx context.Context, node string, batch []Task, waiting int)
	fail  func(t Task, err error)
}

func (s *fakeSender) Known(key string) string { return s.known(key) }
func (s *fakeSender) Fail(t Task, err error)  { s.fail(t, err) }

func (s *fakeSender) Node(ctx context.Context, key string) (string, error) { return s.node(ctx, key) }

func (s *fakeSender) Send(ctx context.Context, node string, batch []Task, try time.Duration, waiting int) {
	s.send(ctx, node, batch, waiting)
}
