// A test waits for another process by polling with a deadline, never by a bare sleep.

package redistest

import (
	"fmt"
	"testing"
	"time"
)

// patience bounds every wait for a server process. It is long because it runs out only on a
// defect, while a loaded machine can be very slow.
const patience = 60 * time.Second

// Eventually polls cond until it returns nil. It fails t with cond's last error if that takes
// longer than within. It polls every few milliseconds, so it suits real processes; inside a
// synctest bubble wait for the event instead.
func Eventually(t testing.TB, within time.Duration, what string, cond func() error) {
	t.Helper()
	if err := poll(within, cond); err != nil {
		t.Fatalf("redistest: %s: not within %v: %v", what, within, err)
	}
}

// poll returns nil as soon as cond does, or cond's last error after within.
func poll(within time.Duration, cond func() error) error {
	deadline := time.Now().Add(within)
	pause := time.Millisecond
	for {
		err := cond()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(pause)
		pause = min(2*pause, 20*time.Millisecond)
	}
}

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
