// The harness's own tests share a few helpers.

package redistest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) {
	Together(6) // most of these tests wait for failovers
	Main(m, Child("exit-with-panic", func(*ChildContext) { panic("on purpose") }),
		Child("with-server", withServer))
}

// witness is a testing.TB that remembers failures instead of failing.
type witness struct {
	testing.TB
	mu     sync.Mutex
	errors []string
}

func (w *witness) Errorf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errors = append(w.errors, fmt.Sprintf(format, args...))
}

func (w *witness) Helper() {}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// once makes a client send each command once only and not wait long.
func once(o *redis.Options) {
	o.MaxRetries = -1
	o.DialerRetries = 1
}
