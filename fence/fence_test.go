package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// Each kind of Fence that needs no database lets pass what is no older than the last.
func TestFence(t *testing.T) {
	for what, f := range map[string]Fence{"in memory": new(Guard), "in Redis": Redis{Client: redistest.Mini(t).Client()}} {
		for _, step := range []struct {
			resource string
			token    int64
			passes   bool
		}{
			{"a", 5, true}, {"a", 5, true}, {"a", 4, false}, {"a", 6, true}, {"a", 5, false},
			{"b", 1, true}, {"a", 1795593711927382, true}, {"a", 1795593711927381, false}, {"a", 1795593711927383, true},
			{"a", 1<<53 + 1, true}, {"a", 1 << 53, false}, {"a", 1<<53 + 2, true}, {"a", 999, false},
			{"a", math.MaxInt64 - 1, true}, {"a", math.MaxInt64, true}, {"a", math.MaxInt64 - 1, false}, {"a", math.MaxInt64, true},
		} {
			err := f.Pass(t.Context(), step.resource, step.token)
			if errors.Is(err, ErrStale) == step.passes || err != nil && !errors.Is(err, ErrStale) {
				t.Errorf("%s: %s, %d: %v", what, step.resource, step.token, err)
			}
		}
	}
}

// failing fails each statement: nothing must come to it.
func (failing) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	return nil, errors.New("a statement was sent")
}

// What is no token passes nowhere, and leaves nothing behind.
func TestWhatIsNoToken(t *testing.T) {
	mini := redistest.Mini(t)
	var g Guard
	f := Redis{Client: mini.Client()}
	for _, token := range []int64{0, -1, -5, math.MinInt64} {
		for what, pass := range map[string]func() error{
			"Guard.Pass": func() error { return g.Pass(t.Context(), "a", token) },
			"Guard.Do":   func() error { return g.Do("a", token, func() error { t.Error("written"); return nil }) },
			"Redis.Pass": func() error { return f.Pass(t.Context(), "a", token) },
			"Redis.Set":  func() error { return f.Set(t.Context(), "a", "x", time.Minute, token) },
			"SQL.Pass":   func() error { return SQL{}.Pass(t.Context(), failing{}, "a", token) },
		} {
			if err := pass(); !errors.Is(err, errs.BadArgument) || errors.Is(err, ErrStale) {
				t.Errorf("%s, %d: %v", what, token, err)
			}
		}
	}
	if left := mini.Keys(); len(left) > 0 || g.newest != nil {
		t.Errorf("left: %v, %v", left, g.newest)
	}
}

// answer is what a driver says of a statement.
type answer struct {
	rows int64
	err  error
}

func (answer) LastInsertId() (int64, error)   { return 0, nil }
func (a answer) RowsAffected() (int64, error) { return a.rows, a.err }

// A write counts only if the database says that it has changed a row.
func TestWroteIsToldByTheRows(t *testing.T) {
	failure := errors.New("out of reach")
	for _, tc := range []struct {
		result    answer
		err, want error
	}{
		{answer{rows: 1}, nil, nil}, {answer{rows: 0}, nil, ErrStale}, {answer{rows: 1}, failure, failure},
		{answer{err: failure}, nil, failure}, {answer{rows: 1, err: failure}, nil, failure},
	} {
		if got := Wrote(tc.result, tc.err); !errors.Is(got, tc.want) || got != nil && tc.want == nil {
			t.Errorf("%+v, %v: %v, want %v", tc.result, tc.err, got, tc.want)
		}
	}
}

// Whatever the order in which writers come, no write follows one with a greater token.
func TestGuard_WritesAreInOrder(t *testing.T) {
	var g Guard
	var written []int64
	var writers sync.WaitGroup
	for _, token := range rand.Perm(1000) {
		writers.Go(func() {
			_ = g.Do("a", int64(token)+1, func() error {
				written = append(written, int64(token)+1)
				return nil
			})
		})
	}
	writers.Wait()
	for i := 1; i < len(written); i++ {
		if written[i] <= written[i-1] {
			t.Fatalf("%d was written after %d", written[i], written[i-1])
		}
	}
	world.Equal(t, written[len(written)-1], 1000, "the last write has the token %d")
}

func TestGuard_AWriteThatFails(t *testing.T) {
	var g Guard
	failure := errors.New("disk full")
	world.WantErr(t, g.Do("a", 5, func() error { return failure }), failure)
	world.WantErr(t, g.Do("a", 4, func() error { t.Error("written"); return nil }), ErrStale)
}

func TestRedis_Set(t *testing.T) {
	mini := redistest.Mini(t)
	rdb := mini.Client()
	f := Redis{Client: rdb, Keep: time.Hour, KeyPrefix: "app:"}
	set := func(value string, token int64, want error) {
		t.Helper()
		redistest.Is(t, value, f.Set(t.Context(), "k", value, time.Minute, token), want)
	}
	set("one", 1, nil)
	set("three", 3, nil)
	set("two", 2, ErrStale)
	world.Equal(t, rdb.Get(t.Context(), "k").Val(), "three", "it is %q")
	if ttl := mini.TTL("k"); ttl <= 0 || ttl > time.Minute {
		t.Errorf("it stays for %v", ttl)
	}
	if ttl := mini.TTL(f.tokenKey("k")); ttl < 50*time.Minute || ttl > time.Hour {
		t.Errorf("the token stays for %v", ttl)
	}
	if err := f.Set(t.Context(), "k", "for ever", 0, 3); err != nil || mini.TTL("k") != 0 {
		t.Errorf("%v, %v left", err, mini.TTL("k"))
	}
}

// A time that is over, as a program may have worked it out, sets nothing for ever, and a very short one is 1 ms.
func TestRedis_Times(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		for _, d := range []time.Duration{-1, -time.Second, math.MinInt64} {
			kept, keeps := Redis{Client: w.RDB}, Redis{Client: w.RDB, Keep: d}
			for what, err := range map[string]error{
				"Set for":              kept.Set(t.Context(), "k", "x", d, 1),
				"Set, remembered for":  keeps.Set(t.Context(), "k", "x", time.Minute, 1),
				"Pass, remembered for": keeps.Pass(t.Context(), "k", 1),
			} {
				if !errors.Is(err, errs.BadArgument) {
					t.Errorf("%s %v: %v", what, d, err)
				}
			}
		}
		if left := w.Mini.Keys(); len(left) > 0 {
			t.Fatalf("left: %v", left)
		}
		for _, d := range []time.Duration{1, 500 * time.Microsecond, time.Millisecond} {
			if err := (Redis{Client: w.RDB, Keep: d}).Set(t.Context(), "k", "x", d, 1); err != nil {
				t.Errorf("for %v: %v", d, err)
			}
			for _, key := range []string{"k", Redis{}.tokenKey("k")} {
				if ttl := w.PTTL(key); ttl != time.Millisecond {
					t.Errorf("%s stays for %v, want 1 ms for %v", key, ttl, d)
				}
			}
		}
	})
}

// The scripts mean the same on real servers, in a cluster.
func TestRedis_RealServers(t *testing.T) {
	f := Redis{Client: redistest.Cluster(t, 3, 0).Client(t)}
	for i := range 20 {
		key := fmt.Sprint("key:", i)
		redistest.Check(t, f.Set(t.Context(), key, "x", time.Minute, 1795593711927383))
		world.WantErr(t, f.Set(t.Context(), key, "y", 0, 1795593711927382), ErrStale)
		world.WantErr(t, f.Pass(t.Context(), key, 1795593711927382), ErrStale)
		redistest.Check(t, f.Pass(t.Context(), key, math.MaxInt64))
		world.WantErr(t, f.Set(t.Context(), key, "y", 0, math.MaxInt64-1), ErrStale)
	}
}

func TestMiddleware(t *testing.T) {
	var g Guard
	handler := Middleware(&g, func(r *http.Request) string { return r.URL.Path })(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "written")
	}))
	ask := func(h http.Handler, path, token string) int {
		r := httptest.NewRequest("PUT", path, nil)
		if token != "" {
			r.Header.Set(Header, token)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	for _, step := range []struct {
		path, token string
		code        int
	}{
		{"/a", "7", 200}, {"/a", "7", 200}, {"/a", "6", 412}, {"/b", "6", 200},
		{"/a", "", 428}, {"/a", "seven", 400}, {"/a", "-1", 400}, {"/a", "8", 200},
	} {
		if code := ask(handler, step.path, step.token); code != step.code {
			t.Errorf("%+v: %d", step, code)
		}
	}
	twice := httptest.NewRequest("PUT", "/a", nil)
	twice.Header[Header] = []string{"9", "10"}
	w := httptest.NewRecorder()
	if handler.ServeHTTP(w, twice); w.Code != 400 {
		t.Errorf("two tokens: %d", w.Code)
	}
	world.Equal(t, ask(handler, "/a", "8"), 200, "after a request with two tokens: %d")
	r := httptest.NewRequest("PUT", "/a", nil)
	if SetHeader(r, 1795593711927383); r.Header.Get(Header) != "1795593711927383" {
		t.Error(r.Header)
	}
	broken := Middleware(failing{}, func(*http.Request) string { return "" })(handler)
	if code := ask(broken, "/a", "9"); code != 503 {
		t.Error(code)
	}
}

type failing struct{}

func (failing) Pass(context.Context, string, int64) error { return errors.New("out of reach") }
