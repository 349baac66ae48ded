package httplimit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/limiter/httplimit"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// Each user may send three requests at once, and one a second.
func ExampleMiddleware() {
	client, _, done := clienttest.Embedded()
	defer done()

	perUser := client.Limiter("api", limiter.Rate(60, time.Minute), limiter.Burst(3))
	user := func(r *http.Request) string { return r.Header.Get("Authorization") }
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	server := httplimit.Middleware(perUser, httplimit.Key(user))(hello)

	for range 4 {
		request := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		request.Header.Set("Authorization", "Bearer ada")
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, request)
		fmt.Printf("%d %s %q\n", answer.Code, answer.Header().Get("RateLimit"), answer.Header().Get("Retry-After"))
	}
	// Output:
	// 200 "api";r=2;t=1 ""
	// 200 "api";r=1;t=2 ""
	// 200 "api";r=0;t=3 ""
	// 429 "api";r=0;t=1 "1"
}

func play(t *testing.T, scene func(t *testing.T, w *world.World, p *world.Process)) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		scene(t, w, p)
		w.Mini.FlushAll()
	})
}

// get sends a request of that user.
func get(t *testing.T, h http.Handler, user string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	r.Header.Set("User", user)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

var (
	ok   = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	user = httplimit.Key(func(r *http.Request) string { return r.Header.Get("User") })
)

func TestFields(t *testing.T) {
	for _, tc := range []struct {
		name   string
		rate   limiter.Option
		policy string
		first  string
		retry  string // of the third request
	}{
		{"api", limiter.Rate(100, time.Minute), `"api";q=100;w=60`, `"api";r=1;t=1`, "1"},
		{"hourly", limiter.Rate(2, time.Hour), `"hourly";q=2;w=3600`, `"hourly";r=1;t=1800`, "1800"},
		{"fast", limiter.Rate(10, 100*time.Millisecond), `"fast";q=100;w=1`, `"fast";r=1;t=1`, "1"},
		{"odd", limiter.Rate(3, 1500*time.Millisecond), `"odd";q=4;w=2`, `"odd";r=1;t=1`, "1"},
		{`a"b\c é`, limiter.Rate(2, time.Hour), `"a\"b\\c ?";q=2;w=3600`, `"a\"b\\c ?";r=1;t=1800`, "1800"},
	} {
		play(t, func(t *testing.T, _ *world.World, p *world.Process) {
			h := httplimit.Middleware(p.Limiter(tc.name, tc.rate, limiter.Burst(2)))(ok)
			first := get(t, h, "")
			if first.Code != http.StatusNoContent || first.Header().Get("RateLimit-Policy") != tc.policy || first.Header().Get("RateLimit") != tc.first {
				t.Errorf("%s: %d %v", tc.name, first.Code, first.Header())
			}
			get(t, h, "")
			refused := get(t, h, "")
			if retry := refused.Header().Get("Retry-After"); refused.Code != http.StatusTooManyRequests || retry != tc.retry ||
				!strings.HasSuffix(refused.Header().Get("RateLimit"), ";r=0;t="+retry) {
				t.Errorf("%s: %d %v", tc.name, refused.Code, refused.Header())
			}
			var body struct {
				Status   int
				Violated []string `json:"violated-policies"`
			}
			if err := json.Unmarshal(refused.Body.Bytes(), &body); err != nil || body.Status != 429 || body.Violated[0] != tc.name {
				t.Errorf("%s: %s, %v", tc.name, refused.Body, err)
			}
			time.Sleep(time.Hour)
			if again := get(t, h, ""); again.Code != http.StatusNoContent {
				t.Errorf("%s, an hour later: %d", tc.name, again.Code)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	play(t, func(t *testing.T, _ *world.World, p *world.Process) {
		h := httplimit.Middleware(p.Limiter("api", limiter.Rate(1, time.Minute)), user, nil)(ok)
		for _, tc := range []struct {
			user string
			code int
		}{{"ada", 204}, {"ada", 429}, {"bob", 204}, {"", 204}, {"", 204}, {"bob", 429}} {
			world.Equal(t, get(t, h, tc.user).Code, tc.code, "%d, want %d (%q)", tc.code, tc.user)
		}
	})
}

func TestRedisOutOfReach(t *testing.T) {
	play(t, func(t *testing.T, _ *world.World, p *world.Process) {
		p.Unplug(true)
		rate := limiter.Rate(1, time.Minute)
		if got := get(t, httplimit.Middleware(p.Limiter("api", rate), httplimit.OnError(nil))(ok), ""); got.Code != http.StatusServiceUnavailable || got.Header().Get("RateLimit") != "" {
			t.Errorf("%d %v", got.Code, got.Header())
		}
		if got := get(t, httplimit.Middleware(p.Limiter("api", rate, limiter.OnUnavailable(limiter.Allow)))(ok), ""); got.Code != 204 || got.Header().Get("RateLimit") != "" {
			t.Errorf("%d %v", got.Code, got.Header())
		}
		var told error
		failed := httplimit.OnError(func(w http.ResponseWriter, _ *http.Request, err error) { told = err; w.WriteHeader(http.StatusTeapot) })
		if got := get(t, httplimit.Middleware(p.Limiter("api", rate), failed)(ok), ""); got.Code != http.StatusTeapot || !errors.Is(told, holdfast.ErrUnavailable) {
			t.Errorf("%d, %v", got.Code, told)
		}
		p.Unplug(false)
	})
}
