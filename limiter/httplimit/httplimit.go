// Package httplimit limits the requests to an HTTP server with a limiter.Limiter. If a request exceeds
// the limit, the answer has the status 429 and the header field Retry-After. If the limiter has checked
// a request, the answer also has the header fields RateLimit and RateLimit-Policy, as
// draft-ietf-httpapi-ratelimit-headers (version 11) defines them.
package httplimit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/limiter"
)

// Option configures the function Middleware of this package.
type Option func(*settings)

type settings struct {
	key    func(*http.Request) string
	failed func(http.ResponseWriter, *http.Request, error)
}

// Key gives each key its own limit, by Limiter.For. Middleware calls the function key for each request.
// The function returns the key of the request, such as the user or the client's address. If the function
// returns "", the request is not limited. Do not use a key that the client can choose, such as
// X-Forwarded-For, unless your own proxy sets that header. Without the option Key, all requests share
// one limit.
func Key(key func(*http.Request) string) Option { return func(s *settings) { s.key = key } }

// OnError sets the function f, which answers a request if the limiter returns an error. In most cases
// the error matches ErrUnavailable. By default the answer has the status 503. If the limiter has
// OnUnavailable(limiter.Allow), Middleware allows requests while Redis cannot be reached, and does not
// call f for them. If f is nil, OnError changes nothing.
func OnError(f func(w http.ResponseWriter, r *http.Request, err error)) Option {
	return func(s *settings) {
		if f != nil {
			s.failed = f
		}
	}
}

// Middleware returns a function that puts the limit l before a handler. Each request takes one unit of l
// or, with the option Key, of the limit of its key. If the limit allows the request, Middleware calls
// the handler. Otherwise Middleware answers with the status 429, and with a body of the type
// application/problem+json. The header field Retry-After of that answer says in how many seconds the
// limit allows a request, rounded up.
//
// The header field RateLimit-Policy has the name of the limiter, and the rate as q requests in w
// seconds. The header field RateLimit says that r requests would be allowed now, and that these r
// requests must suffice for t seconds. In an answer with the status 429, t is the value of Retry-After.
// In any other answer, t is the time until the limit is full again.
func Middleware(l *limiter.Limiter, options ...Option) func(http.Handler) http.Handler {
	s := settings{failed: func(w http.ResponseWriter, _ *http.Request, _ error) {
		problem(w, http.StatusServiceUnavailable, "about:blank", http.StatusText(http.StatusServiceUnavailable), nil)
	}}
	for _, o := range options {
		if o != nil {
			o(&s)
		}
	}
	policy := quoted(l.Name())
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			of := l
			if s.key != nil {
				key := s.key(r)
				if key == "" {
					next.ServeHTTP(w, r)
					return
				}
				of = l.For(key)
			}
			d, err := of.Allow(r.Context(), 1)
			if err != nil {
				s.failed(w, r, err)
				return
			}
			describe(w.Header(), policy, d)
			if !d.Allowed {
				problem(w, http.StatusTooManyRequests, "https://iana.org/assignments/http-problem-types#quota-exceeded",
					"Request cannot be satisfied as assigned quota has been exceeded", []string{l.Name()})
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// describe sets the fields that give the state of the limit. A decision that was made without Redis says nothing.
func describe(h http.Header, policy string, d limiter.Decision) {
	if d.Rate == 0 {
		return
	}
	window := max(seconds(d.Per), 1)
	quota := int64(float64(d.Rate) * (time.Duration(window) * time.Second).Seconds() / d.Per.Seconds())
	h.Set("RateLimit-Policy", fmt.Sprintf("%s;q=%d;w=%d", policy, quota, window))
	until := max(seconds(d.ResetAfter), 1)
	if !d.Allowed {
		until = max(seconds(d.RetryAfter), 1)
		h.Set("Retry-After", strconv.FormatInt(until, 10))
	}
	h.Set("RateLimit", fmt.Sprintf("%s;r=%d;t=%d", policy, d.Remaining, until))
}

// seconds returns d in seconds, rounded up: who comes after so many is not too early.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// quoted returns a name as a String of RFC 9651, which has printable ASCII alone.
func quoted(name string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range name {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r > '~':
			b.WriteByte('?')
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// problem answers with the details of a problem, as RFC 9457 has them.
func problem(w http.ResponseWriter, status int, kind, title string, violated []string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(struct { // the client has gone if that fails
		Type     string   `json:"type"`
		Title    string   `json:"title"`
		Status   int      `json:"status"`
		Violated []string `json:"violated-policies,omitempty"`
	}{kind, title, status, violated})
}
