// slots shows who has which number, and frees one.

package operators

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/slots"
)

func TestSlots(t *testing.T) {
	server := server(t)
	run(t, server, "slots", "show", "w").want(t, 0, "w: no number is taken")
	run(t, server, "slots", "free", "w", "0", "--yes").want(t, 0, "nobody has number 0 of w")
	c := client(t, server, "pod-1")
	rests, err := c.Slots("w", 3, slots.Quarantine(time.Hour), slots.Lease(holdfast.Fixed(300*time.Millisecond))).TryAcquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held, err := c.Slots("w", 3, slots.Prefer(2)).TryAcquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	<-rests.Done()
	redistest.Eventually(t, soon, "number 0 is in quarantine", func() error {
		i, err := c.Inspect(t.Context(), "w")
		if err == nil && (len(i.Holders) != 2 || !i.Holders[0].Quarantined) {
			err = fmt.Errorf("%v", i.Holders)
		}
		return err
	})
	known(t, server, "w", "pod-1")
	run(t, server, "slots", "show", "w").want(t, 0, "w: slots, 1 of 3 free", "held by  0: in quarantine after pod-1", "held by  2: pod-1")
	run(t, server, "ls").want(t, 0, "1 of 3 free")
	run(t, server, "inspect", "w", "--json").want(t, 0, `"number":0,"quarantined":true`, `"number":2,`)
	run(t, server, "release", "w", "--force", "--yes").want(t, 64, "holdfast slots free w N")
	run(t, server, "slots", "free", "w", "0").want(t, 64, "--yes")
	run(t, server, "slots", "free", "w", "x", "--yes").want(t, 64)
	run(t, server, "slots", "free", "w", "1", "--yes").want(t, 0, "nobody has number 1 of w")
	run(t, server, "slots", "free", "w", "0", "--yes").want(t, 0, "w: taken from 0: in quarantine after pod-1")
	run(t, server, "slots", "free", "w", "2", "--yes", "--json").want(t, 0, `"kind":"slots"`, `"number":2`)
	run(t, server, "slots", "show", "w").want(t, 0, "w: no number is taken")
	if err := held.Release(t.Context()); !errors.Is(err, holdfast.ErrLost) {
		t.Error(err)
	}
	l := lock(t, c.Mutex("m"))
	run(t, server, "slots", "free", "m", "0", "--yes").want(t, 1, "m is a mutex, not numbered slots")
	_ = l.Release(t.Context())
}
