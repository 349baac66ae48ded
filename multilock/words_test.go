// These tests show what the errors of a MultiLock and of a Quorum say.

package multilock_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// says fails the test unless the error is one line with one prefix and contains those words.
func says(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	text := err.Error()
	if strings.Contains(text, "\n") || strings.Count(text, "holdfast: ") != 1 || !strings.HasPrefix(text, "holdfast: ") {
		t.Errorf("not one line of one prefix: %s", text)
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("it does not say %q: %s", word, text)
		}
	}
}

// The error of a quorum is one line with a word for each server.
func TestQuorum_SaysWhatEachServerSaid(t *testing.T) {
	play(t, 3, func(t *testing.T, w *redises) {
		p, other := w.process(), w.process()
		p.unplug(0)
		_, err := p.quorum().TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrNoQuorum)
		says(t, err, "0 of 3 granted, 2 needed", "server0:6379: ", "server1:6379: new, or has lost its data: counts in 30s",
			holdfast.ErrNoQuorum.Error())
		p.plug(0)

		l := w.lock(other.quorum())
		_, err = p.quorum().TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		says(t, err, "server2:6379: held by another")
		p.unplug(1)
		p.unplug(2)
		_, err = p.quorum().TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrNoQuorum)
		says(t, err, "server0:6379: held by another")
		p.plug(1)
		p.plug(2)
		time.Sleep(2 * time.Second) // the next dials need not pause after the failed ones
		release(t, l)

		for i := range 2 {
			w.servers[i].Set(name, "a string")
		}
		_, err = p.quorum().TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrWrongType)
		says(t, err, "server0:6379: "+holdfast.ErrWrongType.Error(), "server2:6379: granted")
		for i := range 2 {
			w.servers[i].Del(name)
		}

		l = w.lock(p.quorum())
		for i := range 2 {
			p.unplug(i)
		}
		says(t, l.Release(t.Context()), "2 of 3 servers not released")
		for i := range 2 {
			p.plug(i)
		}
		w.wantHeldOn(0)
	})
}

// Servers that refuse a release are told in one error, which says once what was done to which lock.
func TestQuorum_SaysOnceWhatWasNotReleased(t *testing.T) {
	play(t, 3, func(t *testing.T, w *redises) {
		p := w.process()
		l := w.lock(p.quorum())
		for i := range 2 {
			p.nets[i].OnCommand(func(redistest.Command) redistest.Fault {
				return redistest.ReplyError("ERR Unknown Redis command called from script")
			})
		}
		err := l.Release(t.Context())
		says(t, err, fmt.Sprintf("release quorum %q: 2 of 3 servers not released: owner ", name))
		if strings.Count(err.Error(), strconv.Quote(name)) != 1 || strings.Count(err.Error(), "release ") != 1 {
			t.Errorf("it says twice what was done to which lock: %s", err)
		}
		for _, net := range p.nets {
			net.OnCommand(nil)
		}
		time.Sleep(time.Minute) // what was not released runs out
	})
}

// The error of a MultiLock has one prefix, and says which lock failed.
func TestMultiLock_SaysWhichLockFailed(t *testing.T) {
	play(t, 1, func(t *testing.T, w *redises) {
		p, other := w.process().clients[0], w.process().clients[0]
		l := w.grab(other.Mutex("b"))
		m := holdfast.NewMultiLock(p.Mutex("a"), p.Mutex("b"))
		_, err := m.TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		says(t, err, `try lock all of 2: try lock mutex "b": held by another`)
		release(t, l)
		all := w.all(m, t.Context())
		w.servers[0].FlushAll()
		err = all.Release(t.Context())
		world.WantErr(t, err, holdfast.ErrLost)
		says(t, err, "release all of 2: ", `mutex "a"`, `mutex "b"`)
	})
}
