package main

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// The lock is lost in the middle of a migration: that replica stops, and the next one goes on where it was.
func TestMigrateIsTakenUpByTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := new(database)
		lost := holdfasttest.LosesAfter(t, 30*time.Millisecond) // within the second migration
		if err := migrate(t.Context(), lost, db); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("%v, want a loss", err)
		}
		if got := db.version(); got != 1 {
			t.Errorf("at version %d, want 1", got)
		}
		if err := migrate(t.Context(), holdfasttest.Granting(t), db); err != nil {
			t.Error(err)
		}
		if !slices.Equal(db.done, []int{1, 2, 3}) {
			t.Errorf("applied %v", db.done)
		}
	})
}
