// When a master's replicas have all of its writes.

package redistest

import (
	"fmt"
	"testing"
	"time"
)

// InSync waits until so many replicas have acknowledged what is written now. An online replica is
// not enough: it hears nothing until it has first reported, up to a second later.
func InSync(t testing.TB, master *Proc, replicas int) {
	t.Helper()
	c := master.Admin().Conn() // WAIT is about what its own connection has written
	defer c.Close()
	Eventually(t, 20*time.Second, "the replicas are in sync", func() error {
		if err := c.Set(t.Context(), "in sync", "", time.Millisecond).Err(); err != nil {
			return err
		}
		n, err := c.Wait(t.Context(), replicas, 100*time.Millisecond).Result()
		if err == nil && n < int64(replicas) {
			err = fmt.Errorf("%d are", n)
		}
		return err
	})
}
