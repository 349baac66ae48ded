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

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
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
	audit   *audit
}

func newGuard(token string, anyHost bool, port string, lines *audit) *guard {
	return &guard{
		token: token, anyHost: anyHost, cookie: "holdfast_console_" + port,
		session: rand.Text(), csrf: rand.Text(), same: http.NewCrossOriginProtection(), tries: tries{now: time.Now}, audit: lines,
	}
}

// before returns a handler that serves only what the guard lets through.
func (g *guard) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.headers(w.Header())
		deadlines(w, r)
		switch {
		case !g.anyHost && !loopbackHost(r.Host):
			// A page of elsewhere may have its own name lead to this address.
			g.refuse(w, r, http.StatusMisdirectedRequest, "the console answers to localhost only")
		case g.same.Check(r) != nil || elsewhere(r):
			g.refuse(w, r, http.StatusForbidden, "another site's page must not do that")
		case g.token != "" && r.Method == http.MethodGet && r.URL.Query().Has("token"):
			g.enterByLink(w, r) // even if the session is known: the token must not stay in the address
		case g.token == "" || g.open(r) || g.known(r):
			next.ServeHTTP(w, r)
		case r.Method == http.MethodGet && isPage(r.URL.Path):
			http.Redirect(w, r, "/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		default:
			g.refuse(w, r, http.StatusUnauthorized, "the console wants its token: open it anew")
		}
	})
}

// refuse answers that a request is refused, and prints a line if it would have changed something: what only looks
// comes from pages that were left open, again and again.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, status int, why string) {
	if r.Method != http.MethodGet {
		g.audit.refused(r, r.Method+" "+view.Text(r.URL.Path), why)
	}
	http.Error(w, why, status)
}

// writeAllowed is how long an answer that is no stream may take: a viewer that does not read must not keep a
// connection.
const writeAllowed = 30 * time.Second

// deadlines bounds how long a request, and the answer to it, may keep a connection. A stream sets a deadline for each
// of its messages.
func deadlines(w http.ResponseWriter, r *http.Request) {
	out := http.NewResponseController(w)
	if r.Method != http.MethodGet || r.ContentLength != 0 { // a body that does not come
		_ = out.SetReadDeadline(time.Now().Add(patience))
	}
	switch {
	case r.Method != http.MethodGet: // Check is slow
		_ = out.SetWriteDeadline(time.Now().Add(checkAllowed + writeAllowed))
	case !strings.HasPrefix(r.URL.Path, "/events/"):
		_ = out.SetWriteDeadline(time.Now().Add(writeAllowed))
	}
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
	case !g.tries.may(addressOf(r)):
		g.audit.refused(r, "a token", "too many wrong ones came from there")
		http.Error(w, "too many wrong tokens: wait a minute", http.StatusTooManyRequests)
	case g.token != "" && !equal(given, g.token):
		g.tries.failed(addressOf(r))
		g.audit.refused(r, "a token", "it is wrong")
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
	g.refuse(w, r, http.StatusForbidden, "this does not come from a page of this console: load it anew")
	return false
}

// wrongAMinute is how many wrong tokens may come from one address in a minute.
const wrongAMinute = 10

// mostAddresses is of how many addresses wrong tokens are remembered.
const mostAddresses = 10_000

// tries bounds how fast tokens can be guessed from one address. Others are not kept out for it.
type tries struct {
	now   func() time.Time
	mu    sync.Mutex
	wrong map[string][]time.Time // by address
}

func (t *tries) may(from string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(from)
	return len(t.wrong[from]) < wrongAMinute
}

func (t *tries) failed(from string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.wrong) >= mostAddresses {
		for a := range t.wrong {
			t.forget(a)
		}
	}
	if len(t.wrong) >= mostAddresses || t.wrong == nil { // a token is too long to be guessed from very many addresses too
		t.wrong = make(map[string][]time.Time)
	}
	t.wrong[from] = append(t.wrong[from], t.now())
}

// forget forgets the tries of an address that are older than a minute.
func (t *tries) forget(from string) {
	all := t.wrong[from]
	for len(all) > 0 && t.now().Sub(all[0]) > time.Minute {
		all = all[1:]
	}
	if len(all) == 0 {
		delete(t.wrong, from)
		return
	}
	t.wrong[from] = all
}
