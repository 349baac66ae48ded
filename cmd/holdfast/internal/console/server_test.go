// What the server lets through, and to whom.

package console

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) {
	redistest.Together(6) // those on a server mostly wait
	redistest.Main(m)
}

// serve returns a Server of no Redis, as a changed Options has it.
func serve(t *testing.T, change func(*Options)) *Server {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	client := clienttest.OpenClient(t, rdb)
	o := Options{Client: client, Redis: rdb, Target: "redis://example", Port: "7380"}
	if change != nil {
		change(&o)
	}
	s := New(o)
	t.Cleanup(s.Close)
	return s
}

// ask sends a request to localhost, changed by each of change.
func ask(s *Server, method, path, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "localhost:7380"
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// answers fails the test unless a request is answered with that code.
func answers(t *testing.T, code int, s *Server, method, path, body string, change ...func(*http.Request)) {
	t.Helper()
	if w := ask(s, method, path, body, change...); w.Code != code {
		t.Errorf("%s %s: %d, want %d", method, path, w.Code, code)
	}
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func TestEveryAnswerHasThePolicies(t *testing.T) {
	s := serve(t, nil)
	paths := []string{"/", "/lock/a", "/counts", "/page/app.js", "/page/none", "/session", "/login", "/nothing"}
	for _, path := range paths {
		h := ask(s, "GET", path, "").Header()
		for name, want := range map[string]string{
			"Content-Security-Policy": contentPolicy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
	}
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "script-src 'self';"} {
		if !strings.Contains(contentPolicy, want) || strings.Contains(contentPolicy, "unsafe") {
			t.Errorf("the policy %q lacks %q", contentPolicy, want)
		}
	}
}

// The policy of the page forbids these, so a browser would leave the page without them.
func TestThePageHasNothingThatItsPolicyForbids(t *testing.T) {
	forbidden := map[string]*regexp.Regexp{
		".html": regexp.MustCompile(`(?i)<script>|<style| style=| on[a-z]+=|javascript:|https?://`),
		".js":   regexp.MustCompile(`innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(|new Function|DOMParser`),
		".css":  regexp.MustCompile(`(?i)@import|url\(`),
	}
	err := fs.WalkDir(pages, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := pages.ReadFile(path)
		for kind, re := range forbidden {
			if found := re.Find(text); strings.HasSuffix(path, kind) && found != nil {
				t.Errorf("%s has %q", path, found)
			}
		}
		return err
	})
	redistest.Must(t, err)
}

func TestHosts(t *testing.T) {
	for host, want := range map[string]int{
		"localhost:7380": 200, "LOCALHOST": 200, "127.0.0.1:9999": 200, "[::1]:7380": 200, "127.8.8.8": 200,
		"evil.example": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example:7380": 421, "10.0.0.1": 421, "": 421,
	} {
		local := func(r *http.Request) { r.Host = host }
		redistest.Equal(t, ask(serve(t, nil), "GET", "/", "", local).Code, want, "%d, want %d (host %q)", want, host)
	}
	anywhere := serve(t, func(o *Options) { o.AnyHost, o.Token = true, "a token of this test" })
	if got := ask(anywhere, "GET", "/login", "", func(r *http.Request) { r.Host = "console.example" }).Code; got != 200 {
		t.Errorf("by another name on another address: %d", got)
	}
}

const token = "a token of this test"

func TestWithATokenNothingIsSeenWithoutIt(t *testing.T) {
	s := serve(t, func(o *Options) { o.Token = token })
	for path, want := range map[string]int{
		"/": 303, "/lock/orders%3A42": 303, "/counts": 303, "/session": 401, "/events/list": 401, "/events/lock?name=a": 401,
		"/login": 200, "/page/console.css": 200,
	} {
		answers(t, want, s, "GET", path, "")
	}
	for _, path := range []string{"/check", "/release"} {
		answers(t, 401, s, "POST", path, "{}", header("X-Holdfast-CSRF", s.csrf))
	}
	wrong := header("Cookie", s.cookie+"=wrong")
	answers(t, 401, s, "GET", "/session", "", wrong)
	if w := ask(s, "GET", "/lock/orders%3A42", ""); w.Header().Get("Location") != "/login?next=%2Flock%2Forders%253A42" {
		t.Errorf("it leads to %q", w.Header().Get("Location"))
	}
}

func TestTheTokenGivesACookie(t *testing.T) {
	form := header("Content-Type", "application/x-www-form-urlencoded")
	by := map[string]func(s *Server, given string) *httptest.ResponseRecorder{
		"the form": func(s *Server, given string) *httptest.ResponseRecorder {
			return ask(s, "POST", "/login", url.Values{"token": {given}, "next": {"/lock/a%2Fb?x=1"}}.Encode(), form)
		},
		"a link": func(s *Server, given string) *httptest.ResponseRecorder {
			return ask(s, "GET", "/lock/a%2Fb?x=1&token="+url.QueryEscape(given), "")
		},
	}
	for how, give := range by {
		t.Run(how, func(t *testing.T) {
			s := serve(t, func(o *Options) { o.Token = token })
			w := give(s, "another token")
			if len(w.Result().Cookies()) != 0 || !strings.HasPrefix(w.Header().Get("Location"), "/login?wrong=1") {
				t.Errorf("a wrong token: %v", w.Header())
			}
			w = give(s, token)
			cookies := w.Result().Cookies()
			if w.Code != 303 || w.Header().Get("Location") != "/lock/a%2Fb?x=1" || len(cookies) != 1 {
				t.Fatalf("the token: %d %v", w.Code, w.Header())
			}
			c := cookies[0]
			if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || strings.Contains(c.Value, token) {
				t.Errorf("the cookie is %v", c)
			}
			answers(t, 200, s, "GET", "/session", "", func(r *http.Request) { r.AddCookie(c) })
		})
	}
}

func TestTheTokenLeadsNowhereElse(t *testing.T) {
	for _, next := range []string{
		"https://evil.example/", "//evil.example", "/\\evil.example", "/login", "javascript:alert(1)", "", "/lock/../../x://",
	} {
		got := ownPath(next)
		if !strings.HasPrefix(got, "/") || strings.HasPrefix(got, "//") || strings.Contains(got, "evil") {
			t.Errorf("%q leads to %q", next, got)
		}
	}
}

func TestTokensCannotBeTriedFastFromOneAddress(t *testing.T) {
	s := serve(t, func(o *Options) { o.Token = token })
	now := time.Now()
	s.tries.now = func() time.Time { return now }
	from := func(address string) func(*http.Request) {
		return func(r *http.Request) { r.RemoteAddr = address }
	}
	right := "/?token=" + url.QueryEscape(token)
	for n := range wrongAMinute { // a host has a whole network of IPv6
		answers(t, 303, s, "GET", "/?token=wrong", "", from(fmt.Sprintf("[2001:db8::%x]:1", n+1)))
	}
	for address, want := range map[string]int{
		"[2001:db8::ff]:2": 429, "[2001:db8:0:1::1]:1": 303, "192.0.2.9:1": 303, "[::ffff:192.0.2.9]:1": 303,
	} {
		if w := ask(s, "GET", right, "", from(address)); w.Code != want || want == 303 && len(w.Result().Cookies()) != 1 {
			t.Errorf("the token from %s after %d wrong ones: %d, want %d", address, wrongAMinute, w.Code, want)
		}
	}
	now = now.Add(time.Minute + time.Second)
	answers(t, 303, s, "GET", right, "", from("[2001:db8::1]:1"))
}

func TestOtherSitesChangeNothing(t *testing.T) {
	s := serve(t, func(o *Options) {
		o.Release = func(context.Context, string, string, string, func(Holders) error) (Holders, error) {
			t.Error("something was released")
			return nil, nil
		}
	})
	csrf := header("X-Holdfast-CSRF", s.csrf)
	const body = `{"id":"a","typed":"a"}`
	for what, change := range map[string][]func(*http.Request){
		"no token":             {header("Sec-Fetch-Site", "same-origin")},
		"a wrong token":        {header("X-Holdfast-CSRF", "wrong")},
		"another site":         {csrf, header("Sec-Fetch-Site", "cross-site")},
		"a site beside":        {csrf, header("Sec-Fetch-Site", "same-site")},
		"another origin":       {csrf, header("Origin", "https://evil.example")},
		"another port":         {csrf, header("Origin", "http://localhost:1")},
		"no origin of its own": {csrf, header("Origin", "null")},
	} {
		for _, path := range []string{"/release", "/check"} {
			if w := ask(s, "POST", path, body, change...); w.Code != 403 {
				t.Errorf("%s, %s: %d", path, what, w.Code)
			}
		}
	}
}

func TestOtherSitesMayLinkAndNothingElse(t *testing.T) {
	s := serve(t, nil)
	for path, want := range map[string]int{
		"/": 200, "/lock/a": 200, "/login": 200, "/session": 403, "/events/list": 403, "/page/app.js": 403,
	} {
		answers(t, want, s, "GET", path, "", header("Sec-Fetch-Site", "cross-site"))
	}
}

func TestFilesAreAskedForAgainAndNotSentAgain(t *testing.T) {
	s := serve(t, nil)
	w := ask(s, "GET", "/page/app.js", "")
	if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/javascript") {
		t.Errorf("a script is %q", got)
	}
	tag := w.Header().Get("Etag")
	again := ask(s, "GET", "/page/app.js", "", header("If-None-Match", tag))
	if again.Code != 304 || again.Body.Len() != 0 {
		t.Errorf("again: %d with %d bytes", again.Code, again.Body.Len())
	}
}

// lines reads the messages of a stream.
type lines struct {
	t    *testing.T
	body io.ReadCloser
	left []byte
}

// next returns the next message.
func (l *lines) next() []byte {
	l.t.Helper()
	for {
		if message, rest, found := strings.Cut(string(l.left), "\n\n"); found {
			l.left = []byte(rest)
			_, data, _ := strings.Cut(message, "data: ")
			return []byte(data)
		}
		some := make([]byte, 4096)
		n, err := l.body.Read(some)
		l.left = append(l.left, some[:n]...)
		if err != nil && n == 0 {
			l.t.Fatalf("the stream ended: %v", err)
		}
	}
}

// awaits returns the first message, a listing or a detail, that a condition holds for.
func awaits[T any](l *lines, what string, is func(m T) bool) (m T) {
	l.t.Helper()
	for range 1000 {
		var m T
		redistest.Must(l.t, json.Unmarshal(l.next(), &m))
		if is(m) {
			return m
		}
	}
	l.t.Fatal("no message: ", what)
	return m
}

func TestSeen(t *testing.T) {
	var holders []holdfast.Holder
	var short []string
	for n := range 150 {
		h := holderNumber(t, n)
		holders, short = append(holders, h), append(short, h.Owner.Short())
	}
	for _, c := range []struct {
		holders []holdfast.Holder
		short   []string
		want    bool
	}{
		{holders[:1], short[:1], true}, {holders[:1], short[1:2], false}, {holders[:2], short[:1], false},
		{holders[:1], short[:2], true}, {holders, short[:100], true}, {holders[:100], short[50:150], false}, {nil, nil, true},
	} {
		redistest.Equal(t, seen(c.holders, c.short), c.want, "%v (%d holders, %d seen)", len(c.holders), len(c.short))
	}
}
