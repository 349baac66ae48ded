// The program of docs/testing-your-program.md.

package holdfasttest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

func TestOnlyOneReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := holdfasttest.New(t)
		here, there := s.Client(), s.Client() // two processes

		release := s.HoldElsewhere("report")
		_, err := here.Mutex("report").TryLock(t.Context())
		if !errors.Is(err, holdfast.ErrBusy) {
			t.Error(err)
		}
		time.AfterFunc(time.Hour, release) // an hour of the test's own time
		l, err := there.Mutex("report").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.Lose(l) // l.Done() is closed, and l.Err() matches ErrLost
		s.RequireNoLeases()
	})
}
