// Middleware: a fence in front of an HTTP handler, and the header that the holder sends.

package fence

import (
	"errors"
	"net/http"
	"strconv"
)

// Header is the name of the header with the token.
const Header = "Fencing-Token"

// SetHeader puts the token into the header of a request. Use it for a request that is sent under a lock.
func SetHeader(r *http.Request, token int64) { r.Header.Set(Header, strconv.FormatInt(token, 10)) }

// Middleware passes a request on if its token passes the fence f. The function resource returns the resource of a
// request. Otherwise Middleware answers
//
//   - 428 Precondition Required, if the request has no token;
//   - 400 Bad Request, if the token is not a positive number, or if the request has several;
//   - 412 Precondition Failed, if a later holder has been here before;
//   - 503 Service Unavailable, if the fence failed.
//
// Middleware believes the header. If a client invents a token, such as 9223372036854775807, no later holder passes for
// that resource: in a Guard until the process ends, in SQL for ever, in Redis for Keep after each such request. So let
// authentication in front of Middleware admit only holders of the lock, and let resource return only what this client
// may write. If a client has invented a token, delete the resource's row (SQL) or key (Redis) while nobody holds the
// lock.
//
// Middleware refuses most late requests. But two requests that have both passed may overtake each other before their
// writes. If that matters, let the handler write under a Guard, or by a statement that checks the token.
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
