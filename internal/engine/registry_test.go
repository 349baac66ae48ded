// The registry keeps the holds of this Client, the ledger its calls; ids and what a barrier remembers.

package engine

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// fakeHold is a Held that leaves the registry when it is ended, as real holds do.
type fakeHold struct {
	member Registered
	e      *Engine
	key    string
	holder string
	mu     sync.Mutex
	ended  []error
}

func (h *fakeHold) Registered() *Registered { return &h.member }
func (h *fakeHold) Holder() string          { return h.holder }

func (h *fakeHold) End(cause error) {
	h.e.Unregister(h.key, h)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = append(h.ended, cause)
}

func (h *fakeHold) times() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.ended)
}

func hold(e *Engine, key string) *fakeHold {
	_, id := e.NewOwner()
	h := &fakeHold{e: e, key: key, holder: fmt.Sprint(e.Client(), ":", id)}
	e.Register(key, h)
	return h
}

// A key has several holds in the registry if an old hold has not yet noticed that it was lost.
func TestRegistryKeepsSeveralHoldsOfAKey(t *testing.T) {
	inBubble(t, func(t *testing.T, e *Engine, _ *redistest.MiniServer) {
		for leaver := range 3 { // the first, the middle, the last
			all := []*fakeHold{hold(e, "k"), hold(e, "k"), hold(e, "k")}
			other := hold(e, "j")
			e.Unregister("k", all[leaver])
			e.Unregister("k", all[leaver]) // a second Unregister changes nothing
			if !e.Holds("k") {
				t.Fatal("two are held, and Holds says no")
			}
			cause := errors.New("cause")
			e.EndHeld("k", "nobody", cause)
			for _, h := range all {
				e.EndHeld("j", h.holder, cause)
				if h.times() != 0 {
					t.Error("ended for another holder or key")
				}
				e.EndHeld("k", h.holder, cause)
				e.EndHeld("k", h.holder, cause)
			}
			for i, h := range all {
				if n := h.times(); (n == 0) != (i == leaver) || n > 1 || n == 1 && !errors.Is(h.ended[0], cause) {
					t.Errorf("%d left, %d was ended by %v", leaver, i, h.ended)
				}
			}
			if e.Holds("k") || !e.Holds("j") || other.times() != 0 {
				t.Error("another key's hold was touched, or one is left")
			}
			e.Unregister("j", other)
			e.EndHeld("k", other.holder, cause)
			if e.Holds("j") || len(e.registry.byKey) != 0 {
				t.Errorf("left: %v", e.registry.byKey)
			}
		}
	})
}

func TestNewRefusesWhatConnRefuses(t *testing.T) {
	e, err := New(nil, nil, discard)
	if e != nil {
		t.Error("an Engine on nothing")
	}
	redistest.Is(t, "an Engine on nothing", err, errs.BadArgument)
}

func TestAClusterThatDoesNotSayHowReleasesAreToldIsGuessed(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		proxy := redistest.Mini(t).Proxy()
		proxy.OnCommand(func(c redistest.Command) redistest.Fault {
			if slices.Contains(c.Args, "shardnumsub") {
				return redistest.Silence
			}
			return redistest.Pass
		})
		rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:6379"}, Dialer: proxy.Dial})
		defer rdb.Close()
		e, err := New(rdb, nil, discard)
		redistest.Must(t, err)
		defer e.Close()
		start := time.Now()
		redistest.Equal(t, e.Publish(t.Context()), "SPUBLISH", "%s, which nobody hears where there is SPUBLISH")
		redistest.Equal(t, time.Since(start), publishPatience, "the call waited for %v, want %v", publishPatience)
	})
}

func TestClientIDs(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		id := newClient()
		parsed, err := uuid.Parse(id)
		if err != nil || parsed.Variant() != uuid.RFC4122 || len(id) != 36 || seen[id] {
			t.Fatalf("%q: %v", id, err)
		}
		seen[id] = true
		if !IsClient(id) {
			t.Errorf("%q is no Client's", id)
		}
		if java := uuid.NewString(); IsClient(java) {
			t.Errorf("%q is a Client's", java)
		}
	}
	if IsClient("") || IsClient("x") {
		t.Error("what is no UUID is a Client's")
	}
}

// The greatest number counts, whichever comes first. The memory does not grow without an end.
func TestEnded(t *testing.T) {
	var e Ended
	redistest.Equal(t, e.Greatest("a"), 0, "%d, and nothing was noted")
	for _, n := range []int64{3, 7, 5, 0} {
		e.Note("a", n)
	}
	e.Note("b", 2)
	if a, b := e.Greatest("a"), e.Greatest("b"); a != 7 || b != 2 {
		t.Errorf("%d and %d, want 7 and 2", a, b)
	}
	for i := range 10 * maxEnded {
		e.Note(strconv.Itoa(i), int64(i+1))
		if n := e.Greatest(strconv.Itoa(i)); n != int64(i+1) || len(e.greatest) > maxEnded {
			t.Fatalf("%d, with %d names", n, len(e.greatest))
		}
	}
}
