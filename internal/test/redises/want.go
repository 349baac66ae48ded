// What tests want of leases and errors, whichever lock they are of.

package redises

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// Handle has what all leases have in common.
type Handle interface {
	Context(context.Context) context.Context
	Done() <-chan struct{}
	Err() error
	Release(context.Context) error
}

// WantLive fails the test unless the lease and its context last.
func WantLive(t *testing.T, h Handle, ctx context.Context) {
	t.Helper()
	select {
	case <-h.Done():
		t.Errorf("done: %v", h.Err())
	default:
	}
	if h.Err() != nil || ctx.Err() != nil {
		t.Errorf("ended: %v, context %v", h.Err(), context.Cause(ctx))
	}
}

// WantEnded fails the test unless every method of the lease says that the lease ended for this cause.
func WantEnded(t *testing.T, h Handle, ctx context.Context, cause error) {
	t.Helper()
	select {
	case <-h.Done():
	default:
		t.Error("not done")
	}
	world.WantErr(t, h.Err(), cause)
	if ctx.Err() == nil {
		t.Error("the context lasts")
	}
	world.WantErr(t, context.Cause(ctx), cause)
}

// Release releases the leases, and fails the test on an error.
func Release(t *testing.T, all ...interface{ Release(context.Context) error }) {
	t.Helper()
	for _, l := range all {
		redistest.Check(t, l.Release(t.Context()))
	}
}

// Says fails the test unless the error is one line with one prefix and contains those words.
func Says(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	text := err.Error()
	if strings.Contains(text, "\n") || strings.Count(text, "holdfast: ") != 1 || !strings.HasPrefix(text, "holdfast: ") {
		t.Errorf("not one line of one prefix: %s", text)
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("it does not say %q: %s", word, text)
		}
	}
}

// WantName returns hooks that fail the test if they get another name than want.
func WantName(t *testing.T, want string) []holdfast.DoOption {
	seen := func(hook, name string) {
		if name != want {
			t.Errorf("%s hook of %q, want %q", hook, name, want)
		}
	}
	return []holdfast.DoOption{
		holdfast.OnAcquire(func(_ context.Context, held holdfast.Handle) { seen("acquire", held.Name()) }),
		holdfast.OnExit(func(_ context.Context, held holdfast.Handle, _ error) { seen("exit", held.Name()) }),
	}
}
