// The program of docs/testing.md.

package holdfast_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestAFixedLeaseEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := redistest.Mini(t)
		rdb := server.Client()
		client := holdfast.New(rdb)
		defer client.Close()

		l, err := client.Mutex("m", holdfast.Fixed(time.Second)).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // passes at once
		if !errors.Is(l.Err(), holdfast.ErrLost) {
			t.Errorf("Err() = %v", l.Err())
		}
	})
}
