// The registry keeps the holds of this Client.

package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

var discard = slog.New(slog.DiscardHandler)

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

func TestCloseEndsEveryHold(t *testing.T) {
	inBubble(t, func(t *testing.T, e *Engine, _ *redistest.MiniServer) {
		all := []*fakeHold{hold(e, "k"), hold(e, "k"), hold(e, "j")}
		e.Close()
		for i, h := range all {
			if h.times() != 1 {
				t.Fatalf("%d was ended %d times", i, h.times())
			}
			mustMatch(t, h.ended[0], errs.Closed)
		}
	})
}

// Many goroutines register, end and unregister holds of the same keys: none is missed, and none is left.
func TestRegistryUnderLoad(t *testing.T) {
	inBubble(t, func(t *testing.T, e *Engine, _ *redistest.MiniServer) {
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				key := string(rune('a' + i%3))
				for n := range 1000 {
					h := hold(e, key)
					if !e.Holds(key) && h.times() == 0 {
						t.Error("held, and Holds says no")
					}
					if n%10 == 0 {
						e.EndHeld(key, h.holder, errs.Lost)
					}
					e.Unregister(key, h)
				}
			})
		}
		wg.Wait()
		if n := len(e.registry.byKey); n != 0 {
			t.Errorf("%d keys are left", n)
		}
	})
}

// No two owners share an id.
func TestOwnersAreUnique(t *testing.T) {
	inBubble(t, func(t *testing.T, e *Engine, _ *redistest.MiniServer) {
		var seen sync.Map
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 100 {
					client, id := e.NewOwner()
					if _, again := seen.LoadOrStore(id, true); again || client != e.Client() {
						t.Errorf("%s:%d again", client, id)
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestNewRefusesWhatConnRefuses(t *testing.T) {
	e, err := New(nil, nil, discard)
	if e != nil {
		t.Error("an Engine on nothing")
	}
	mustMatch(t, err, errs.BadArgument)
}
