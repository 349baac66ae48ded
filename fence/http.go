// Middleware: a fence in front of an HTTP handler, and the header that the holder sends.

package fence

import (
	"errors"
	"net/http"
	"strconv"
)

// Header is the name of the HTTP header that has the fencing token.
const Header = "Fencing-Token"

// SetHeader puts the token into the header of the request r. Use it for a request that a holder sends
// under a lock.
func SetHeader(r *http.Request, token int64) { r.Header.Set(Header, strconv.FormatInt(token, 10)) }

// Middleware puts the fence f before an HTTP handler. The function resource returns the resource of a
// request. If the token of a request passes f for that resource, Middleware calls the handler. Otherwise
// Middleware answers
//
//   - 428 Precondition Required, if the request has no token;
//   - 400 Bad Request, if the token is not a positive number, or if the request has several tokens;
//   - 412 Precondition Failed, if a later holder has already shown a greater token;
//   - 503 Service Unavailable, if the fence failed.
//
// Middleware believes the header. If a client invents a great token, such as 9223372036854775807, no
// later holder passes for that resource. In a Guard this lasts until the process ends, in SQL for ever,
// and in Redis for the time Keep after each such request. So let authentication in front of Middleware
// admit only clients that may hold the lock, and let the function resource return only a resource to
// which this client may write. If a client has invented a token, delete the resource's row (SQL) or key
// (Redis) while nobody holds the lock.
//
// Middleware refuses most late requests. But if two requests have both passed, one of them may overtake
// the other before they write. If that matters, let the handler write under a Guard, or by a statement
// that checks the token.
func Middleware(f Fence, resource func(*http.Request) string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			token, code := tokenOf(r)
			if code == 0 {
				code = codeOf(f.Pass(r.Context(), resource(r), token))
			}
			if code != 0 {
				http.Error(w, http.StatusText(code), code)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// tokenOf returns the token of a request, or the status code for one without.
func tokenOf(r *http.Request) (token int64, code int) {
	text := r.Header.Get(Header)
	switch n := len(r.Header.Values(Header)); {
	case n > 1: // which of them counts, others on the way may see otherwise
		return 0, http.StatusBadRequest
	case text == "":
		return 0, http.StatusPreconditionRequired
	}
	token, err := strconv.ParseInt(text, 10, 64)
	if err != nil || token <= 0 {
		return 0, http.StatusBadRequest
	}
	return token, 0
}

// codeOf returns the status code for the answer of a fence, 0 if the token has passed.
func codeOf(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrStale):
		return http.StatusPreconditionFailed
	}
	return http.StatusServiceUnavailable
}
