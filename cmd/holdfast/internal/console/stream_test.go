// Streams on a real Redis: what a viewer is told, what it costs, and what it never hears.

package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

const patient = time.Minute

// live is a Server of a real Redis, which serves HTTP.
type live struct {
	t     *testing.T
	redis *redistest.Proc
	*Server
	http   *httptest.Server
	client *holdfast.Client // another process's
}

func start(t *testing.T) *live {
	t.Helper()
	redistest.Parallel(t)
	l := &live{t: t, redis: redistest.Server(t)}
	heeds := func(o *redis.Options) { o.ContextTimeoutEnabled = true }
	looks := clienttest.OpenClient(t, l.redis.Client(t))
	l.Server = New(Options{Client: looks, Redis: l.redis.Client(t, heeds), Port: "7380"})
	l.http = httptest.NewServer(l.Server)
	l.client = clienttest.OpenClient(t, l.redis.Client(t), holdfast.WithIdentity("billing-7f9c"))
	t.Cleanup(func() {
		l.Server.Close()
		l.http.Close()
	})
	return l
}

// open opens a stream, and returns a function that closes it.
func (l *live) open(path string, change ...func(*http.Request)) (*lines, func()) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	l.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.http.URL+path, nil)
	redistest.Must(l.t, err)
	for _, c := range change {
		c(r)
	}
	answer, err := l.http.Client().Do(r)
	redistest.Must(l.t, err)
	l.t.Cleanup(func() { _ = answer.Body.Close() })
	return &lines{t: l.t, body: answer.Body}, cancel
}

func (l *live) lock(name string) *holdfast.Lease {
	l.t.Helper()
	return clienttest.Grab(l.t, l.client.Mutex(name, holdfast.Fixed(time.Hour))) // no renewal changes it
}

func whole(m listing) bool { return m.Order != nil }

func TestAViewerHearsAllAndThenWhatChanges(t *testing.T) {
	l := start(t)
	for n := range 20 {
		l.lock(fmt.Sprintf("lock:%02d", n))
	}
	redistest.Eventually(t, patient, "who holds it", func() error {
		i, err := l.client.Inspect(t.Context(), "lock:00")
		if err == nil && i.Holders[0].Who == "" {
			err = errors.New("nothing is said yet")
		}
		return err
	})
	s, _ := l.open("/events/list")
	first := awaits(s, "the list", whole)
	if len(first.Rows) != 20 || len(*first.Order) != 20 || first.Totals.Held != 20 {
		t.Fatalf("the first message has %d rows, %+v", len(first.Rows), first.Totals)
	}
	l.lock("lock:05b")
	next := awaits(s, "the new lock", whole)
	if len(next.Rows) != 1 || len(*next.Order) != 21 {
		t.Errorf("one lock more, and the message has %d rows: %s", len(next.Rows), next.Rows)
	}

	// After a break the viewer hears all again.
	again, _ := l.open("/events/list", header("Last-Event-ID", "7"))
	if m := awaits(again, "the list", whole); len(m.Rows) != 21 {
		t.Errorf("after a break it hears of %d rows", len(m.Rows))
	}
}

func TestWhatAViewerAsksFor(t *testing.T) {
	l := start(t)
	for n := range 120 {
		l.lock(fmt.Sprintf("lock:%03d", n))
	}
	redistest.Must(t, redistest.Err(l.client.Semaphore("pool").TrySetPermits(t.Context(), 4)))
	for query, want := range map[string]string{
		"":             "50 rows from lock%3A000, of 120, page 1 of 3",
		"?page=3":      "20 rows from lock%3A100, of 120, page 3 of 3",
		"?page=99":     "20 rows from lock%3A100, of 120, page 3 of 3",
		"?order=down":  "50 rows from lock%3A119, of 120, page 1 of 3",
		"?q=LOCK:11":   "10 rows from lock%3A110, of 10, page 1 of 1",
		"?q=nothing":   "0 rows from none, of 0, page 1 of 1",
		"?kind=rwlock": "0 rows from none, of 0, page 1 of 1",
		"?older=1h":    "0 rows from none, of 0, page 1 of 1",
		"?older=1ms":   "50 rows from lock%3A000, of 120, page 1 of 3",
		"?show=counts": "1 rows from pool, of 1, page 1 of 1",
	} {
		s, end := l.open("/events/list" + query)
		m := awaits(s, "the list", whole)
		name := "none"
		if len(*m.Order) > 0 {
			name = (*m.Order)[0]
		}
		got := fmt.Sprintf("%d rows from %s, of %d, page %d of %d", len(m.Rows), name, *m.Matched, m.Page, m.Pages)
		redistest.Equal(t, got, want, "%s, want %s (%s)", want, query)
		end()
	}
	// By the holder.
	s, _ := l.open("/events/list?q=BILLING")
	awaits(s, "all, by their holder", func(m listing) bool { return m.Matched != nil && *m.Matched == 120 })
}

func TestNobodyLooksNothingIsAsked(t *testing.T) {
	l := start(t)
	l.lock("orders:42")
	redistest.Must(t, l.client.Close()) // the lock stays, and nothing but the console asks any more
	fresh := l.commands()
	if n := l.commands() - fresh; n != 1 {
		t.Errorf("before anybody looks %d commands were run beside this test's", n-1)
	}
	s, end := l.open("/events/list")
	awaits(s, "the list", whole)
	one, endOne := l.open("/events/lock?name=orders%3A42")
	one.next()
	if n := l.commands() - fresh; n < 5 {
		t.Errorf("a look shows as %d commands", n)
	}
	end()
	endOne()
	l.nobodyLooks()
	// What does not happen cannot be awaited: in this time a viewer would have cost several looks. A look that was
	// under way may still end.
	redistest.Eventually(t, patient, "three seconds without a command", func() error {
		before := l.commands()
		<-time.After(3 * time.Second)
		if n := l.commands() - before; n != 1 {
			return fmt.Errorf("%d commands were run beside this test's", n-1)
		}
		return nil
	})
}

// nobodyLooks waits until no stream is left.
func (l *live) nobodyLooks() {
	l.t.Helper()
	redistest.Eventually(l.t, patient, "the end of the looks", func() error {
		if l.viewers.number() != 0 || !l.all.idle() || !l.hubOf("orders:42").idle() {
			return errors.New("somebody looks")
		}
		return nil
	})
}

// commands returns how many commands Redis has run.
func (l *live) commands() (n int) {
	l.t.Helper()
	info, err := l.redis.Admin().Info(l.t.Context(), "stats").Result()
	redistest.Must(l.t, err)
	_, rest, _ := strings.Cut(info, "total_commands_processed:")
	redistest.Must(l.t, redistest.Err(fmt.Sscan(rest, &n)))
	return n
}

func TestManyViewersCostWhatOneCosts(t *testing.T) {
	l := start(t)
	l.lock("orders:42")
	var all []*lines
	for range 20 {
		s, _ := l.open("/events/list")
		awaits(s, "the list", whole)
		all = append(all, s)
	}
	// An Observer begins a look each second at the most. One look of one lock is some 20 commands, those of its
	// scripts included.
	before, began := l.commands(), time.Now()
	for range 3 {
		for _, s := range all {
			s.next()
		}
	}
	if n := l.commands() - before; float64(n) > 40*(2+time.Since(began).Seconds()) {
		t.Errorf("in %v 20 viewers cost %d commands", time.Since(began), n)
	}
}

func TestASlowViewerIsDropped(t *testing.T) {
	l := start(t)
	l.patience = 50 * time.Millisecond
	// A pipe has no room: whoever does not read keeps the server from writing.
	here, end := throughPipe(l.Server)
	t.Cleanup(end)
	redistest.Must(t, redistest.Err(io.WriteString(here, "GET /events/list HTTP/1.1\r\nHost: localhost\r\n\r\n")))
	redistest.Eventually(t, patient, "the end of the slow viewer", func() error {
		if n := l.viewers.number(); n != 0 || l.all.known().looked.IsZero() && l.all.idle() {
			return fmt.Errorf("%d viewers", n)
		}
		return nil
	})
}

// throughPipe has a Server serve one connection, which is a pipe, and returns its other end, and what ends both.
func throughPipe(s *Server) (here net.Conn, end func()) {
	there, here := net.Pipe()
	pipes := &pipeListener{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
	pipes.conns <- there
	server := &http.Server{Handler: s}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(pipes) })
	return here, func() {
		_ = here.Close()
		_ = server.Close()
		serving.Wait()
	}
}

// pipeListener accepts the connections that it is given.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipeListener) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// A bound that refuses would let one address keep all others out.
func TestWhoHasMostViewersMakesRoomForANewOne(t *testing.T) {
	for _, c := range []struct {
		what  string
		there map[string]int // viewers by address, of which a's came first
		comes string
		ends  string // whose oldest viewer ends
	}{
		{"there is room", map[string]int{"a": 3}, "b", ""},
		{"one address has very many", map[string]int{"a": perAddress}, "a", "a"},
		{"one address has very many, and another comes", map[string]int{"a": perAddress}, "b", ""},
		{"all is taken by two", map[string]int{"a": perAddress, "b": atOnce - perAddress}, "c", "a"},
		{"all is taken, mostly by the second", map[string]int{"a": 10, "b": 50, "c": 40}, "d", "b"},
		{"who comes has most", map[string]int{"a": 45, "b": 44, "c": 11}, "a", "a"},
	} {
		var v viewers
		oldest := make(map[string]*viewer)
		for _, from := range []string{"a", "b", "c"} {
			for range c.there[from] {
				me := v.enter(from)
				if oldest[from] == nil {
					oldest[from] = me
				}
			}
		}
		me := v.enter(c.comes)
		ended := ""
		for from, one := range oldest {
			select {
			case <-one.gone:
				ended += from
			default:
			}
		}
		if n := v.number(); ended != c.ends || n > atOnce {
			t.Errorf("%s: the oldest of %q ends, want %q; %d viewers", c.what, ended, c.ends, n)
		}
		select {
		case <-me.gone:
			t.Errorf("%s: the new one does not get in", c.what)
		default:
		}
	}
}

func TestAViewerThatMakesRoomHearsOfIt(t *testing.T) {
	l := start(t)
	first, _ := l.open("/events/list")
	awaits(first, "the list", whole)
	for range perAddress {
		s, _ := l.open("/events/list")
		s.next()
	}
	for range 1000 {
		if m := string(first.next()); m == `{"full":true}` {
			return
		}
	}
	t.Error("the oldest stream goes on")
}

func TestOfVeryManyNamesSomeAreSeenAsTheListIs(t *testing.T) {
	s := serve(t, nil)
	for n := range closeUps {
		if h := s.hubOf(fmt.Sprint(n)); h == s.all {
			t.Fatalf("the %d. name has no Observer of its own", n+1)
		}
	}
	_, leave := s.hubOf("0").join()
	defer leave()
	if h := s.hubOf("one more"); h == s.all {
		t.Error("nobody looks at the others, and one more has no Observer of its own")
	}
	for n := range closeUps - 2 {
		_, leave := s.hubOf(fmt.Sprint(n + 1)).join()
		defer leave()
	}
	_, leave = s.hubOf("one more").join()
	defer leave()
	if h := s.hubOf("too many"); h != s.all {
		t.Error("there are more Observers than said")
	}
}

// wholeSecret is the id of a Client, or of a permit: who knows one can release what it holds.
var wholeSecret = regexp.MustCompile(`[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}`)

func TestNoStreamTellsASecret(t *testing.T) {
	l := start(t)
	held := l.lock("orders:42")
	permits := l.client.PermitSemaphore("pool")
	redistest.Must(t, redistest.Err(permits.TrySetPermits(t.Context(), 3)))
	leased, err := permits.Acquire(t.Context(), 2)
	redistest.Must(t, err)
	other := clienttest.OpenClient(t, l.redis.Client(t))
	var waiting sync.WaitGroup
	waiting.Go(func() { _, _ = other.FairMutex("orders:42").Lock(t.Context()) })
	defer waiting.Wait()

	list, _ := l.open("/events/list")
	counts, _ := l.open("/events/list?show=counts")
	one, _ := l.open("/events/lock?name=orders%3A42")
	pool, _ := l.open("/events/lock?name=pool")
	var all strings.Builder
	collect := func(s *lines, what string) {
		for range 1000 {
			m := string(s.next())
			all.WriteString(m)
			if strings.Contains(m, what) {
				return
			}
		}
		t.Fatalf("no message has %s", what)
	}
	collect(list, `"waiters":1`)
	collect(counts, `"all":3`)
	collect(one, `"queue"`)
	collect(pool, `"permit"`)
	redistest.Must(t, leased.Release(t.Context()))
	collect(pool, `"released"`)
	redistest.Must(t, held.Release(t.Context()))
	collect(one, `"passed"`)
	redistest.Equal(t, wholeSecret.FindString(all.String()), "", "the page hears the whole id %s")
}

func TestOneNameHasAPast(t *testing.T) {
	l := start(t)
	held := l.lock("orders:42")
	s, end := l.open("/events/lock?name=orders%3A42")
	if first := awaits(s, "the first", func(detail) bool { return true }); !first.Whole || first.Name != "orders:42" {
		t.Errorf("the first message is %+v", first)
	}
	awaits(s, "the holder", func(d detail) bool {
		return d.Row != nil && len(d.Row.Holders) == 1 && d.Row.ID == "orders%3A42"
	})
	redistest.Must(t, held.Release(t.Context()))
	released := func(d detail) bool {
		return slices.ContainsFunc(d.Past, func(h happened) bool {
			return h.What == "released" && h.From.Owner == held.Owner().Short() && h.Begun > 0
		})
	}
	awaits(s, "the release", released)
	end()
	again, endAgain := l.open("/events/lock?name=orders%3A42")
	awaits(again, "the release, after a break", released)

	// What ends while nobody looks is found by the first look after that, and shows as what it is: late.
	unwatched := l.lock("orders:42")
	awaits(again, "the holder", func(d detail) bool { return d.How == known && d.Row != nil && len(d.Row.Holders) == 1 })
	endAgain()
	l.nobodyLooks()
	redistest.Must(t, unwatched.Release(t.Context()))
	late, _ := l.open("/events/lock?name=orders%3A42")
	awaits(late, "the release that nobody watched", func(d detail) bool {
		return slices.ContainsFunc(d.Past, func(h happened) bool {
			return h.What == "released" && h.From.Owner == unwatched.Owner().Short() && h.Late
		})
	})
}

func TestCheckIsAskedOnceAMinute(t *testing.T) {
	l := start(t)
	csrf := header("X-Holdfast-CSRF", l.csrf)
	ask1 := ask(l.Server, "POST", "/check", "", csrf)
	ask2 := ask(l.Server, "POST", "/check", "", csrf)
	if ask1.Code != 200 || !strings.Contains(ask1.Body.String(), "appendonly is off") {
		t.Errorf("%d %s", ask1.Code, ask1.Body)
	}
	if ask1.Body.String() != ask2.Body.String() {
		t.Errorf("at once afterwards: %s", ask2.Body)
	}
}

// An empty list, a zero or a free lock would be an answer, and there is none.
func TestOfASilentRedisNothingIsKnown(t *testing.T) {
	s := serve(t, func(o *Options) { o.Patience = 200 * time.Millisecond })
	server := httptest.NewServer(s)
	defer server.Close()
	l := &live{t: t, Server: s, http: server}
	for _, path := range []string{"/events/list", "/events/list?show=counts", "/events/lock?name=orders%3A42"} {
		stream, end := l.open(path)
		for failed := false; !failed; {
			text := stream.next()
			var m listing
			redistest.Must(t, json.Unmarshal(text, &m))
			if m.How != unknown || m.Looked != 0 || claims.Match(text) {
				t.Errorf("%s: nothing has been seen, and a viewer hears %s", path, text)
			}
			if failed = m.Error != ""; failed && !m.Silent {
				t.Errorf("%s: that Redis does not answer shows as %s", path, text)
			}
		}
		end()
	}
}

// claims matches what a message says of names.
var claims = regexp.MustCompile(`"(totals|matched|order|rows|row)":`)

// What a viewer sees of an outage is what was seen before it, whether the page was open then or is opened later.
func TestInAnOutageWhatWasSeenIsOld(t *testing.T) {
	l := start(t)
	l.lock("orders:42")
	list, _ := l.open("/events/list")
	awaits(list, "the list", func(m listing) bool { return m.How == known && len(m.Rows) == 1 })
	l.redis.Freeze()
	awaits(list, "the outage", func(m listing) bool { return m.How == old && m.Silent && m.Looked > 0 })
	later, _ := l.open("/events/list")
	m := awaits(later, "the list", func(m listing) bool { return m.How == old && whole(m) })
	if len(m.Rows) != 1 || m.Totals.Held != 1 {
		t.Errorf("a page that is opened in the outage has %s, %+v", m.Rows, m.Totals)
	}
	one, _ := l.open("/events/lock?name=orders%3A42")
	awaits(one, "the holder, as the list saw it", func(d detail) bool {
		return d.How == old && d.Looked > 0 && d.Row != nil && len(d.Row.Holders) == 1
	})
	other, _ := l.open("/events/lock?name=orders%3A43")
	if d := awaits(other, "why", func(d detail) bool { return d.Silent }); d.How != unknown || d.Row != nil {
		t.Errorf("a name that nobody has seen is %s, %+v", d.How, d.Row)
	}
	l.redis.Thaw()
	awaits(other, "that it is free", func(d detail) bool { return d.How == known && d.Row != nil && d.Row.Kind == "free" })
	awaits(list, "the end of the outage", func(m listing) bool { return m.How == known })
}
