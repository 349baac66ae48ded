// Servers that lose their data, and servers that were never there: when they count.

package quorum_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redises"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// A server that comes back without its data does not count until the longest lease is over.
// Otherwise B would be in with A.
func TestQuorum_Amnesia(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		a, b := w.began(), w.process()
		a.Unplug(2) // A holds two of three servers
		l := w.lock(a.quorum())
		w.WantHeldOn(2)
		held := l.Context(t.Context())

		time.Sleep(15 * time.Second)
		w.RestartEmpty(1)
		restarted := w.Now()
		_, err := b.quorum().TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		if text, _ := w.Servers[1].Get(markerKey); !strings.HasPrefix(text, "lost:") {
			t.Errorf("the marker is %q", text)
		}
		if ttl := w.Servers[1].TTL(markerKey); ttl != 0 {
			t.Errorf("the marker goes away after %v", ttl)
		}
		var told time.Duration
		go func() { <-held.Done(); told = w.Now() }()
		next := w.lock(b.quorum())
		synctest.Wait()
		if told == 0 || told > w.Now() {
			t.Errorf("A was told at %v, B was in at %v", told, w.Now())
		}
		// A gave the first server back when A learned of its loss, and A never held the third. So B
		// need not wait for the second.
		if told-restarted > 10*time.Second+100*time.Millisecond {
			t.Errorf("A was told %v later", told-restarted)
		}
		world.WantErr(t, l.Err(), holdfast.ErrLost)
		w.WantHeldOn(2) // not on the server that does not count
		redises.Release(t, next)

		b.Unplug(2)
		began := w.Now()
		redises.Release(t, w.lock(b.quorum()))
		if since := w.Now() - restarted; since < 30*time.Second || began-restarted > 29*time.Second {
			t.Errorf("it counts again after %v", since)
		}
	})
}

// If a member was down when the quorum began, the quorum later takes it for a server that lost its
// data. The other servers go on.
func TestQuorum_BeginsWithoutOne(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.process()
		p.Unplug(0)
		_, err := p.quorum().TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrNoQuorum)
		began := w.Now()
		redises.Release(t, w.lock(p.quorum())) // this looks the same as a loss of data on two servers
		if took := w.Now() - began; took < 29*time.Second || took > 32*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// Many processes begin the same quorum at once. Those that lose a race give back what they took, and one
// of them is in soon.
func TestQuorum_BeginTogether(t *testing.T) {
	play(t, 5, func(t *testing.T, w *stage) {
		const contenders = 10
		each := redistest.Count(t, 50)
		inside := 0
		var tokens []int64
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range contenders {
			p := w.process()
			wg.Go(func() {
				for i := range each {
					l := w.lock(p.quorum())
					if i == 0 && w.Now() > time.Minute {
						t.Errorf("the first is in at %v", w.Now())
					}
					mu.Lock()
					if inside++; inside > 1 {
						t.Error("two are in")
					}
					tokens = append(tokens, l.Token())
					mu.Unlock()
					time.Sleep(time.Millisecond)
					mu.Lock()
					inside--
					mu.Unlock()
					redises.Release(t, l)
				}
			})
		}
		wg.Wait()
		if !slices.IsSorted(tokens) || len(slices.Compact(tokens)) != contenders*each {
			t.Error("the tokens do not grow")
		}
		if markers := w.markers(); !slices.Equal(markers, slices.Repeat([]string{"new"}, 5)) {
			t.Errorf("the markers are %q", markers)
		}
	})
}
