// This file checks the lock and its queue against a plain model of both.

package fairlock

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/test/queuemodel"
)

// Whatever calls come in whatever order, the lock is in the state of the model, and tokens grow.
func TestModel(t *testing.T) {
	kind := modelled(t)
	queuemodel.Run(t, func(*queuemodel.Play) queuemodel.Kind { return kind })
}

// So it is if some of those that wait have priorities.
func TestModelOfPriorities(t *testing.T) {
	r := newResource(new(engine.Engine), "n", "n", new(hold.Settings))
	of := func(o *queuemodel.Owner) int64 { return ahead(o.Index / 2) } // two processes have the same
	queuemodel.Run(t, func(p *queuemodel.Play) queuemodel.Kind {
		kind := modelled(t)
		kind.Times = append(kind.Times, 3000, 3000)
		kind.Resource = &r
		kind.Enters = func(_ *rapid.T, o *queuemodel.Owner) { r.ahead = of(o) }
		kind.Number = func(o *queuemodel.Owner) int64 { return numberIn(p.Queue, p.Now, of(o)) }
		return kind
	})
}

// numberIn returns the number of the place of one that joins the queue at that time, in ms, and seems to
// have come that much earlier, in us.
func numberIn(queue []queuemodel.Place, now, ahead int64) int64 {
	number := now * 1000
	if n := len(queue); n > 0 {
		number = max(number, queue[n-1].Number+1)
	}
	if number%10 == 0 {
		number++
	}
	taken := func(p queuemodel.Place) bool { return p.Number == number }
	for number -= ahead; ahead > 0 && slices.ContainsFunc(queue, taken) || number%10 == 0; {
		number++
	}
	return number
}

func modelled(t *testing.T) queuemodel.Kind {
	t.Helper()
	at, err := keys.Space("").ForFairLock("n")
	if err != nil {
		t.Fatal(err)
	}
	r := newResource(new(engine.Engine), "n", "n", new(hold.Settings))
	return queuemodel.Kind{
		Lock: queuemodel.Lock{Lease: 8 * time.Second, Kept: placeKept}, Keys: queuemodel.Keys{Hash: at.Hash, Queue: at.Queue, Alive: at.Alive},
		Processes: [2]string{clientA, clientB}, Times: []int64{1, 700, 1000, 4999, 5001, 31000}, Resource: &r,
	}
}
