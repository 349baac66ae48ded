// Package console serves a web page of what is in Redis now, and of what has happened while somebody looked.
//
// The page asks for nothing: it opens one stream, and is notified. All who look at the list share one
// Observer, and so do all who look at one name, so viewers cost Redis nothing but the first. Nobody looks:
// nothing is asked.
//
//	guard.go            who may see it
//	server.go           what is served
//	audit.go            a line for each release, and for each refusal
//	pattern.go          which names it has anything to do with
//	stream.go           one viewer, notified by server-sent events
//	viewers.go          how many of them there are, and whose
//	hub.go              one Observer for many viewers
//	knowledge.go        what a hub knows, and what it does not know
//	listing.go, row.go  the list, one page at a time
//	detail.go, past.go  one name, and its recent past
//	change.go           what asks or changes something: Check, and a release by force
//	page/               what runs in the browser
package console

import (
	"crypto/sha256"
	"embed"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"path"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/observe"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
	"github.com/holdfast-go/holdfast/internal/inspect"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// Options says what a Server shows, and to whom.
type Options struct {
	Client   *holdfast.Client
	Redis    redis.UniversalClient // leads to the same Redis as Client, and heeds contexts
	Space    keys.Space            // what the keys of Client begin with
	Pattern  string                // which names it has anything to do with, in the syntax of SCAN; the default is all
	Patience time.Duration         // for how long Redis may be silent
	Target   string                // what the page calls the Redis: an address without a password

	Token   string // what a viewer must give; "" if nothing
	AnyHost bool   // it may be reached by names other than localhost: with a token, which no other name's page has
	Port    string // on which it listens

	// Release takes a name from its holders by force. If it is nil, the console only reads.
	Release Release
	// Say prints a line: for each release by force, and for each refusal. nil: nothing is printed.
	Say func(line string)
}

// Server is the console, as a handler of HTTP requests.
type Server struct {
	Options
	*guard
	handler http.Handler
	past    *past
	all     *hub
	checks  checks
	audit   *audit
	viewers viewers

	mu       sync.Mutex
	hubs     map[string]*hub // of the names that somebody looks at
	closing  chan struct{}
	patience time.Duration
}

// New returns a Server. It asks Redis nothing until somebody looks.
func New(o Options) *Server {
	lines := &audit{say: o.Say, now: time.Now}
	s := &Server{
		Options: o, guard: newGuard(o.Token, o.AnyHost, o.Port, lines), audit: lines, past: newPast(remembered),
		hubs: make(map[string]*hub), closing: make(chan struct{}), patience: patience,
	}
	s.all = newHub("", s.observer(o.Pattern), s.past)
	mux := http.NewServeMux()
	for _, path := range []string{"GET /{$}", "GET /counts", "GET /findings"} {
		mux.HandleFunc(path, file("index.html"))
	}
	mux.HandleFunc("GET /lock", s.page(func(r *http.Request) string { return r.URL.Query().Get("name") }))
	mux.HandleFunc("GET /lock/{name...}", s.page(func(r *http.Request) string { return r.PathValue("name") }))
	mux.HandleFunc("GET /login", file("login.html"))
	mux.HandleFunc("POST /login", s.login)
	mux.HandleFunc("GET /page/{file}", func(w http.ResponseWriter, r *http.Request) { file(r.PathValue("file"))(w, r) })
	mux.HandleFunc("GET /session", s.hello)
	mux.HandleFunc("GET /events/list", s.list)
	mux.HandleFunc("GET /events/lock", s.one)
	mux.HandleFunc("POST /check", s.check)
	mux.HandleFunc("POST /release", s.release)
	s.handler = s.before(mux)
	return s
}

func (s *Server) observer(pattern string) *observe.Observer {
	return observe.New(s.Client, observe.Options{Pattern: pattern, Patience: s.Options.Patience})
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Close ends all streams and looks. It must be called once.
func (s *Server) Close() {
	close(s.closing)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hubs {
		h.close()
	}
	s.all.close()
}

// closeUps is how many names may have an Observer of their own. Those beyond are seen as the list sees them.
const closeUps = 8

// hubOf returns the hub that looks at a name.
func (s *Server) hubOf(name string) *hub {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hubs[name]; h != nil {
		h.learn(s.all.known())
		return h
	}
	for old, h := range s.hubs {
		if len(s.hubs) >= closeUps && h.idle() {
			delete(s.hubs, old)
		}
	}
	if len(s.hubs) >= closeUps || name == "" {
		return s.all
	}
	s.hubs[name] = newHub(name, s.observer(inspect.Literal(name)), s.past)
	s.hubs[name].learn(s.all.known())
	return s.hubs[name]
}

// page returns a handler that serves the page of a name.
func (s *Server) page(nameOf func(r *http.Request) string) http.HandlerFunc {
	serve := file("index.html")
	return func(w http.ResponseWriter, r *http.Request) {
		if name := nameOf(r); !s.within(name) {
			s.refuse(w, r, http.StatusForbidden, "a look at "+view.Name(name), s.outside(name))
			return
		}
		serve(w, r)
	}
}

// refuse answers that something is refused, and prints a line of it.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, status int, what, why string) {
	s.audit.refused(r, what, why)
	http.Error(w, why, status)
}

// hello tells a page what it needs to know before it shows anything.
func (s *Server) hello(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, struct {
		CSRF     string `json:"csrf"`
		Target   string `json:"target"`
		Pattern  string `json:"pattern,omitempty"`
		Releases bool   `json:"releases"`
	}{s.csrf, s.Target, s.Pattern, s.Release != nil})
}

// answer answers in JSON.
func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a viewer that has gone needs no answer
}

//go:embed page
var pages embed.FS

// file returns a handler that serves one file of the page.
func file(name string) http.HandlerFunc {
	text, err := pages.ReadFile("page/" + name)
	if err != nil {
		return http.NotFound
	}
	tag := fmt.Sprintf("%q", fmt.Sprintf("%x", sha256.Sum256(text))[:16])
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-cache") // kept, and asked for again each time
		h.Set("Etag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		h.Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
		h.Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = w.Write(text)
	}
}
