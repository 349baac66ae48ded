// These tests show what the errors of a Quorum say.

package quorum_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redises"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// The error of a quorum is one line with a word for each server.
func TestQuorum_SaysWhatEachServerSaid(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p, other := w.process(), w.process()
		p.Unplug(0)
		_, err := p.quorum().TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrNoQuorum)
		redises.Says(t, err, "0 of 3 granted, 2 needed", "server0:6379: ", "server1:6379: new, or has lost its data: counts in 30s",
			holdfast.ErrNoQuorum.Error())
		p.Plug(0)

		l := w.lock(other.quorum())
		_, err = p.quorum().TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		redises.Says(t, err, "server2:6379: held by another")
		p.Unplug(1)
		p.Unplug(2)
		_, err = p.quorum().TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrNoQuorum)
		redises.Says(t, err, "server0:6379: held by another")
		p.Plug(1)
		p.Plug(2)
		time.Sleep(2 * time.Second) // the next dials need not pause after the failed ones
		redises.Release(t, l)

		for i := range 2 {
			w.Servers[i].Set(name, "a string")
		}
		_, err = p.quorum().TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrWrongType)
		redises.Says(t, err, "server0:6379: "+holdfast.ErrWrongType.Error(), "server2:6379: granted")
		for i := range 2 {
			w.Servers[i].Del(name)
		}

		l = w.lock(p.quorum())
		for i := range 2 {
			p.Unplug(i)
		}
		redises.Says(t, l.Release(t.Context()), "2 of 3 servers not released")
		for i := range 2 {
			p.Plug(i)
		}
		w.WantHeldOn(0)
	})
}

// Servers that refuse a release are told in one error, which says once what was done to which lock.
func TestQuorum_SaysOnceWhatWasNotReleased(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.process()
		l := w.lock(p.quorum())
		for i := range 2 {
			p.Nets[i].OnCommand(func(redistest.Command) redistest.Fault {
				return redistest.ReplyError("ERR Unknown Redis command called from script")
			})
		}
		err := l.Release(t.Context())
		redises.Says(t, err, fmt.Sprintf("release quorum %q: 2 of 3 servers not released: owner ", name))
		if strings.Count(err.Error(), strconv.Quote(name)) != 1 || strings.Count(err.Error(), "release ") != 1 {
			t.Errorf("it says twice what was done to which lock: %s", err)
		}
		for _, net := range p.Nets {
			net.OnCommand(nil)
		}
		time.Sleep(time.Minute) // what was not released runs out
	})
}
