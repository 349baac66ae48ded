// The guard: who may see the console, and what a browser may do with it.

package console

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// contentPolicy lets a page have the scripts and styles that the console serves, and nothing else. Trusted types
// make the browser refuse every call by which a script could turn text into markup.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// guard stands before all that the console serves.
type guard struct {
	token   string // "" if none is required
	anyHost bool   // pages may call the console by any host's name
	cookie  string // the name of the cookie: cookies know no ports, and two consoles may share a host
	session string // what the cookie has: a secret of this process
	csrf    string // what a page must send along with a change
	same    *http.CrossOriginProtection
	tries   tries
}

func newGuard(token string, anyHost bool, port string) *guard {
	return &guard{
		token: token, anyHost: anyHost, cookie: "holdfast_console_" + port,
		session: rand.Text(), csrf: rand.Text(), same: http.NewCrossOriginProtection(), tries: tries{now: time.Now},
	}
}

// before returns a handler that serves only what the guard lets through.
func (g *guard) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.headers(w.Header())
		if r.Method != http.MethodGet { // a body that does not come must not keep a connection
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(patience))
		}
		switch {
		case !g.anyHost && !loopbackHost(r.Host):
			// A page of elsewhere may have its own name lead to this address.
			http.Error(w, "the console answers to localhost only", http.StatusMisdirectedRequest)
		case g.same.Check(r) != nil || elsewhere(r):
			http.Error(w, "another site's page must not do that", http.StatusForbidden)
		case g.token == "" || g.open(r) || g.known(r):
			next.ServeHTTP(w, r)
		case r.Method == http.MethodGet && r.URL.Query().Has("token"):
			g.enterByLink(w, r)
		case r.Method == http.MethodGet && isPage(r.URL.Path):
			http.Redirect(w, r, "/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		default:
			http.Error(w, "the console wants its token: open it anew", http.StatusUnauthorized)
		}
	})
}

// elsewhere reports whether another site's page asks for something that is no page. It could not read the answer,
// but it could make the console look.
func elsewhere(r *http.Request) bool {
	from := r.Header.Get("Sec-Fetch-Site")
	return from != "" && from != "same-origin" && from != "none" && !isPage(r.URL.Path) && r.URL.Path != "/login"
}

func (g *guard) headers(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// isPage reports whether a path is one that people open.
func isPage(path string) bool {
	return path == "/" || path == "/counts" || path == "/findings" || path == "/lock" || strings.HasPrefix(path, "/lock/")
}

// open reports whether anybody may ask that: for the form in which the token is given, and its files.
func (g *guard) open(r *http.Request) bool {
	return r.URL.Path == "/login" || r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/page/")
}

// known reports whether a request comes from a browser that has given the token.
func (g *guard) known(r *http.Request) bool {
	c, err := r.Cookie(g.cookie)
	return err == nil && equal(c.Value, g.session)
}

// equal compares two texts in a time that tells nothing of them.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// loopbackHost reports whether the Host of a request is this machine itself, whatever the port: it may come
// through a tunnel.
func loopbackHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// enterByLink takes the token out of a link, so that it does not stay in the address bar.
func (g *guard) enterByLink(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	given := q.Get("token")
	q.Del("token")
	next := url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: q.Encode()}
	g.enter(w, r, given, next.RequestURI())
}

// login takes the token from the form.
func (g *guard) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4096)
	g.enter(w, r, r.PostFormValue("token"), r.PostFormValue("next"))
}

// enter gives the cookie for the token, and leads to a page.
func (g *guard) enter(w http.ResponseWriter, r *http.Request, given, next string) {
	next = ownPath(next)
	form := "/login?wrong=1&next=" + url.QueryEscape(next)
	switch {
	case !g.tries.may():
		http.Error(w, "too many wrong tokens: wait a minute", http.StatusTooManyRequests)
	case g.token != "" && !equal(given, g.token):
		g.tries.failed()
		http.Redirect(w, r, form, http.StatusSeeOther)
	default:
		http.SetCookie(w, &http.Cookie{
			Name: g.cookie, Value: g.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		})
		http.Redirect(w, r, next, http.StatusSeeOther)
	}
}

// ownPath returns a path if it leads to a page of the console, or else the first page.
func ownPath(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || !isPage(u.Path) || strings.HasPrefix(path, "//") {
		return "/"
	}
	return u.RequestURI()
}

// allowed reports whether a request that changes something comes from a page of this console, and answers it
// if not.
func (g *guard) allowed(w http.ResponseWriter, r *http.Request) bool {
	if equal(r.Header.Get("X-Holdfast-CSRF"), g.csrf) {
		return true
	}
	http.Error(w, "this does not come from a page of this console: load it anew", http.StatusForbidden)
	return false
}

// wrongAMinute is how many wrong tokens may be given in a minute.
const wrongAMinute = 10

// tries bounds how fast tokens can be guessed.
type tries struct {
	now   func() time.Time
	mu    sync.Mutex
	wrong []time.Time
}

func (t *tries) may() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.wrong) > 0 && t.now().Sub(t.wrong[0]) > time.Minute {
		t.wrong = t.wrong[1:]
	}
	return len(t.wrong) < wrongAMinute
}

func (t *tries) failed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrong = append(t.wrong, t.now())
}
