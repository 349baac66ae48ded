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

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// soon bounds every wait: it runs out only on a defect.
const soon = time.Minute

// on returns an Observer, and a Client that holds.
func on(t *testing.T, server *redistest.Proc, o Options) (*Observer, *holdfast.Client) {
	t.Helper()
	looks, works := holdfast.New(server.Client(t)), holdfast.New(server.Client(t))
	t.Cleanup(func() {
		_ = looks.Close()
		_ = works.Close()
	})
	return New(looks, o), works
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

// seen returns the last change, and how many there were.
func (f *followed) seen() (Change, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last, f.n
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

func lock(t *testing.T, c *holdfast.Client, name string) *holdfast.Lease {
	t.Helper()
	ctx := redistest.Within(t, soon)
	l, err := c.Mutex(name).Lock(ctx)
	redistest.Must(t, err)
	return l
}

func release(t *testing.T, l *holdfast.Lease) {
	t.Helper()
	redistest.Must(t, l.Release(t.Context()))
}

func TestWhatStandsThereAtFirstIsNoEvent(t *testing.T) {
	server := redistest.Server(t)
	o, works := on(t, server, Options{Pattern: "a*", Every: 10 * time.Millisecond})
	there := lock(t, works, "a1")
	other := lock(t, works, "b1")
	f := follow(t, o)
	f.begins()
	first, _ := f.seen()
	if s := first.States; len(s) != 1 || s[0].Name != "a1" || len(s[0].Holders) != 1 {
		t.Errorf("%v", s)
	}
	comes := lock(t, works, "a2")
	f.hears("a2 granted")
	release(t, comes)
	f.hears("a2 released")
	release(t, there)
	f.hears("a1 released")
	release(t, other)
	redistest.Is(t, "stop", f.stop(), context.Canceled)
	if slices.ContainsFunc(f.all, func(e string) bool { return strings.HasPrefix(e, "a1 granted") || e[0] == 'b' }) {
		t.Errorf("%q", f.all)
	}
}

// A look an hour away is brought forward by the message of a release and of a count.
func TestAMessageWakes(t *testing.T) {
	server := redistest.Server(t)
	for name, begin := range map[string]func(*holdfast.Client) (act func() error){
		"released": func(c *holdfast.Client) func() error {
			l := lock(t, c, "released")
			return func() error { return l.Release(t.Context()) }
		},
		"counted 3/0": func(c *holdfast.Client) func() error {
			return func() error { _, err := c.Latch("counted").TrySetCount(t.Context(), 3); return err }
		},
		"counted 3/3": func(c *holdfast.Client) func() error {
			return func() error { _, err := c.Semaphore("counted").TrySetPermits(t.Context(), 3); return err }
		},
	} {
		t.Run(name, func(t *testing.T) {
			word, _, _ := strings.Cut(name, " ")
			o, works := on(t, server, Options{Pattern: word, Every: time.Hour})
			act := begin(works)
			f := follow(t, o)
			f.begins()
			subscribed(t, server)
			redistest.Must(t, act())
			f.hears(word + " " + name)
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
	_, seen := second.seen()
	second.until("it goes on for the other", func() bool { return second.n > seen+1 })
	_ = second.stop()
	if o.now != nil {
		t.Error("it still looks")
	}
	again := follow(t, o)
	again.begins()
}

// However many messages come, a name is looked at ten times a second at the most.
func TestMessagesCostNoMoreThanIsStated(t *testing.T) {
	server := redistest.Server(t)
	o, works := on(t, server, Options{Pattern: "x", Every: time.Millisecond})
	l := lock(t, works, "x")
	f := follow(t, o)
	f.begins()
	subscribed(t, server)
	begun := time.Now()
	_, before := f.seen()
	server.Admin().ConfigResetStat(t.Context())
	for time.Since(begun) < 2*time.Second {
		server.Admin().Publish(t.Context(), "redisson_lock__channel:{x}", "0")
	}
	_, calls, _ := strings.Cut(server.Admin().Info(t.Context(), "commandstats").Val(), "cmdstat_evalsha:calls=")
	seconds := time.Since(begun).Seconds()
	// The look that was under way when the count began, and a renewal, may be beyond that.
	n := 0
	redistest.Must(t, redistest.Err(fmt.Sscanf(calls, "%d", &n)))
	if n == 0 || float64(n) > 20*seconds+4 {
		t.Errorf("%d requests in %.1f s", n, seconds)
	}
	if _, n := f.seen(); n == before {
		t.Error("it did not look")
	}
	_ = f.stop()
	release(t, l)
}

// An outage is told, and what happened meanwhile is told after it.
func TestAnOutageIsTold(t *testing.T) {
	server := redistest.Server(t)
	o, works := on(t, server, Options{Pattern: "x*", Every: 10 * time.Millisecond, Patience: 200 * time.Millisecond})
	l := lock(t, works, "x1")
	f := follow(t, o)
	f.begins()
	server.Freeze()
	f.until("an outage", func() bool { return errors.Is(f.last.Err, holdfast.ErrUnavailable) })
	if c, _ := f.seen(); len(c.States) != 1 {
		t.Errorf("what is not known to be gone is gone: %v", c.States)
	}
	server.Thaw()
	f.until("the end of the outage", func() bool { return f.last.Err == nil })
	comes := lock(t, works, "x2")
	f.hears("x2 granted")
	release(t, comes)
	_ = l.Release(t.Context()) // it may have been lost meanwhile
}

func TestAnObserverThatMayNotLookSaysWhy(t *testing.T) {
	server := redistest.Server(t)
	redistest.Must(t, server.Admin().Do(t.Context(), "ACL", "SETUSER", "u", "on", ">p", "~y*", "+@all").Err())
	as := func(o *redis.Options) { o.Username, o.Password = "u", "p" }
	client := holdfast.New(server.Client(t, as))
	t.Cleanup(func() { _ = client.Close() })
	o := New(client, Options{Pattern: "x"})
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
