// This file checks the lock and its queue against a plain model of both.

package fairlock

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/test/queuemodel"
)

// Whatever calls come in whatever order, the lock is in the state of the model, and tokens grow.
func TestModel(t *testing.T) {
	at, err := keys.Space("").ForFairLock("n")
	if err != nil {
		t.Fatal(err)
	}
	r := newResource(new(engine.Engine), "n", "n", new(hold.Settings))
	queuemodel.Run(t, func(*queuemodel.Play) queuemodel.Kind {
		return queuemodel.Kind{
			Lock: queuemodel.Lock{Lease: 8 * time.Second, Kept: queueLease}, Keys: queuemodel.Keys{Hash: at.Hash, Queue: at.Queue, Alive: at.Alive},
			Processes: [2]string{clientA, clientB}, Times: []int64{1, 700, 1000, 4999, 5001, 31000}, Resource: &r,
		}
	})
}
