package main

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

func TestReportWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := holdfasttest.New(t)
		release := s.HoldElsewhere("report")
		time.AfterFunc(time.Hour, release) // an hour of the test's own time

		begun := time.Now()
		if err := report(t.Context(), s.Client().Mutex("report"), time.Minute); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begun); waited < time.Hour {
			t.Errorf("done after %v: it did not wait", waited)
		}
		s.RequireNoLeases()
	})
}

func TestReportStopsWhenTheLockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := holdfasttest.LosesAfter(t, 10*time.Second)
		err := report(t.Context(), lock, time.Minute)
		if !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("%v, want a loss", err)
		}
	})
}
