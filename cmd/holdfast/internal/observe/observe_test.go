// An Observer tells all who follow what happens, and asks Redis nothing when nobody does.

package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// soon bounds every wait: it runs out only on a defect.
const soon = time.Minute

// on returns an Observer, and a Client that holds.
func on(t *testing.T, server *redistest.Proc, o Options) (*Observer, *holdfast.Client) {
	t.Helper()
	return New(clienttest.OpenClient(t, server.Client(t)), o), clienttest.OpenClient(t, server.Client(t))
}

// followed collects what one follower is told.
type followed struct {
	t    *testing.T
	stop func() error
	mu   sync.Mutex
	news chan struct{}
	all  []string // events, as words with the name before them
	last Change
	n    int // how many changes
}

func follow(t *testing.T, o *Observer) *followed {
	t.Helper()
	f := &followed{t: t, news: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.Follow(ctx, f.take) }()
	f.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = f.stop() })
	return f
}

func (f *followed) take(c Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range c.Events {
		words := fmt.Sprintf("%s %s", e.Name, e.What)
		if e.What == holdfast.EventCounted {
			words += fmt.Sprintf(" %d/%d was %d", e.Value, e.All, e.Was)
		}
		f.all = append(f.all, words)
	}
	f.last = c
	f.n++
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// until waits until what was told fits.
func (f *followed) until(what string, fits func() bool) {
	f.t.Helper()
	timeout := time.After(soon)
	for {
		f.mu.Lock()
		ok := fits()
		f.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-f.news:
		case <-timeout:
			f.mu.Lock()
			defer f.mu.Unlock()
			f.t.Fatalf("not told: %s; told: %q, %+v", what, f.all, f.last)
		}
	}
}

// hears waits for an event whose words begin so.
func (f *followed) hears(begins string) {
	f.t.Helper()
	f.until(begins, func() bool {
		return slices.ContainsFunc(f.all, func(e string) bool { return strings.HasPrefix(e, begins) })
	})
}

// begins waits for the first look.
func (f *followed) begins() {
	f.t.Helper()
	f.until("a first look", func() bool { return f.n > 0 && f.last.Err == nil })
}

// A look an hour away is brought forward by the message of a release and of a count.
func TestAMessageWakes(t *testing.T) {
	server := redistest.Server(t)
	for what, act := range map[string]func(*holdfast.Client) error{
		"unseen": func(c *holdfast.Client) error {
			return holdfast.Do(t.Context(), c.Mutex("x"), func(context.Context) error { return nil })
		},
		"counted 3/0": func(c *holdfast.Client) error { return redistest.Err(c.Latch("x").TrySetCount(t.Context(), 3)) },
		"counted 3/3": func(c *holdfast.Client) error { return redistest.Err(c.Semaphore("x").TrySetPermits(t.Context(), 3)) },
	} {
		t.Run(what, func(t *testing.T) {
			o, works := on(t, server, Options{Pattern: "x", Every: time.Hour})
			f := follow(t, o)
			f.begins()
			subscribed(t, server)
			redistest.Must(t, act(works))
			f.hears("x " + what)
			_ = f.stop()
			server.Admin().FlushAll(t.Context())
		})
	}
}

// subscribed waits until an Observer listens.
func subscribed(t *testing.T, server *redistest.Proc) {
	t.Helper()
	redistest.Eventually(t, soon, "a subscription", func() error {
		if n := server.Admin().PubSubNumPat(t.Context()).Val(); n < 5 {
			return errors.New("nobody listens")
		}
		return nil
	})
}

// Work that is done, and a barrier that trips, are seen although InspectAll leaves them out then.
func TestTheEndOfWhatIsLeftOutIsSeen(t *testing.T) {
	server := redistest.Server(t)
	o, works := on(t, server, Options{Every: 10 * time.Millisecond})
	f := follow(t, o)
	f.begins()
	done := make(chan error, 1)
	ctx := redistest.Within(t, soon)
	go func() { _, err := works.Barrier("b", 2).Await(ctx); done <- err }()
	f.hears("b counted 1/2 was 0")
	redistest.Must(t, redistest.Err(works.Barrier("b", 2).Await(ctx)))
	redistest.Must(t, <-done)
	f.hears("b tripped")
	f.until("nothing stands", func() bool { return len(f.last.States) == 0 })
}

func TestNobodyFollowsNobodyLooks(t *testing.T) {
	server := redistest.Server(t)
	o, _ := on(t, server, Options{Pattern: "x", Every: 10 * time.Millisecond})
	first, second := follow(t, o), follow(t, o)
	first.begins()
	second.begins()
	_ = first.stop()
	second.mu.Lock()
	seen := second.n
	second.mu.Unlock()
	second.until("it goes on for the other", func() bool { return second.n > seen+1 })
	_ = second.stop()
	if o.now != nil {
		t.Error("it still looks")
	}
	again := follow(t, o)
	again.begins()
}

func TestAnObserverThatMayNotLookSaysWhy(t *testing.T) {
	server := redistest.Server(t)
	as := clienttest.User(t, server, "u", "~y*", "+@all")
	o := New(clienttest.OpenClient(t, server.Client(t, as)), Options{Pattern: "x"})
	var told Change
	ctx := redistest.Within(t, soon)
	err := o.Follow(ctx, func(c Change) { told = c })
	if !errors.Is(err, holdfast.ErrDenied) || !errors.Is(told.Err, holdfast.ErrDenied) {
		t.Errorf("%v, %v", err, told.Err)
	}
}

// Who comes later is told of an outage too.
func TestALateFollowerIsToldWhatTheOthersWere(t *testing.T) {
	o := New(nil, Options{})
	w := &watching{done: make(chan struct{}), followers: make(map[*follower]bool)}
	o.now = w
	w.tell([]holdfast.Inspection{{Name: "x"}}, nil, holdfast.ErrUnavailable)
	if _, me := o.join(); len(me.news) != 1 {
		t.Error("nothing is told")
	} else if c := w.take(me); !errors.Is(c.Err, holdfast.ErrUnavailable) || len(c.States) != 1 {
		t.Errorf("%+v", c)
	}
}

func TestAFollowerThatDoesNotKeepUpMissesEvents(t *testing.T) {
	w := watching{followers: make(map[*follower]bool)}
	me := &follower{news: make(chan struct{}, 1)}
	w.followers[me] = true
	w.tell(nil, make([]holdfast.Event, keeps-1), nil)
	w.tell(nil, make([]holdfast.Event, 3), nil)
	if c := w.take(me); len(c.Events) != keeps || c.Missed != 2 {
		t.Errorf("%d events, %d missed", len(c.Events), c.Missed)
	}
	if c := w.take(me); len(c.Events) != 0 || c.Missed != 0 {
		t.Errorf("%d events, %d missed", len(c.Events), c.Missed)
	}
}
