// Package world is where tests of behaviour play: one Redis on virtual time, any number of processes
// that use it, and one onlooker. Only tests import it.
package world

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

// Name is the lock that most tests use. The other constants name its neighbours in Redis.
const (
	Name      = "myLock"
	TokenKey  = "redisson_lock_token:{myLock}"
	Channel   = "redisson_lock__channel:{myLock}"
	AllTokens = "redisson_lock_token:"

	SlotTokens  = "holdfast_slots_token:"  // of slots
	AllAsked    = "holdfast_lock_asked:"   // who is asked for a lock, until its lease would be over
	AllClaims   = "holdfast_lock_newest:"  // who wants to supersede its holder
	ShardTokens = "holdfast_shards_token:" // of shards
)

// World is one Redis in a synctest bubble. Its server knows all scripts, so that every call is one EVALSHA.
type World struct {
	T       *testing.T
	Mini    *redistest.MiniServer
	RDB     *redis.Client // the onlooker's
	Start   time.Time
	scripts map[string]string // sha or source to name

	Processes []*Process
}

// Play runs scene in a world of its own, on virtual time. After scene, play closes every process.
// Then no channel and no key except tokens may be left.
func Play(t *testing.T, scene func(t *testing.T, w *World)) {
	t.Helper()
	redistest.Bubble(t, func(t *testing.T) {
		w := &World{T: t, Mini: redistest.Mini(t), Start: time.Now()}
		w.RDB = w.Mini.Client()
		w.load()
		scene(t, w)
		for _, p := range w.Processes {
			p.Close()
		}
		redistest.LeftBehind(t, w.RDB, AllTokens, SlotTokens, ShardTokens, AllAsked, AllClaims)
	})
}

// Crowd lets p find out that q waits for the lock. p remembers this for 10 s: in that time the
// releases of p look for waiters at once.
func (w *World) Crowd(p, q *Process) {
	w.T.Helper()
	l := w.Lock(w.T.Context(), p.MyLock)
	a := w.GoLock(w.T.Context(), q.MyLock)
	synctest.Wait()
	w.Release(l)
	next, err := a.Result()
	redistest.Must(w.T, err)
	w.Release(next)
}

// At sleeps until d after the beginning.
func (w *World) At(d time.Duration) {
	w.T.Helper()
	if late := w.Now() - d; late > 0 {
		w.T.Fatalf("it is %v already, %v later than the test wants", w.Now(), late)
	}
	time.Sleep(d - w.Now())
	synctest.Wait()
}

// Stepped sets the server's clock to d ahead of all other clocks.
func (w *World) Stepped(d time.Duration) { w.Mini.SetTime(time.Now().Add(d)) }

// Step sets the server's clock to d ahead of all other clocks, and keeps it running, until the test
// calls the returned function.
func (w *World) Step(d time.Duration) (stop func()) {
	return w.Clock(func() time.Time { return time.Now().Add(d) })
}

// Clock has the server's clock follow another, until the test calls the returned function.
func (w *World) Clock(now func() time.Time) (stop func()) {
	done := make(chan struct{})
	var ticker sync.WaitGroup
	ticker.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			w.Mini.SetTime(now())
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	})
	synctest.Wait()
	return func() { close(done); ticker.Wait(); synctest.Wait() }
}

// Now returns how long ago the world began.
func (w *World) Now() time.Duration { return time.Since(w.Start) }

// PTTL returns a key's time to live. -2 ns means that there is no key, -1 ns that the key never expires.
func (w *World) PTTL(key string) time.Duration {
	w.T.Helper()
	d, err := w.RDB.PTTL(w.T.Context(), key).Result()
	redistest.Must(w.T, err)
	return d
}

// Holders returns the fields of the lock's hash, sorted, each as "owner=count".
func (w *World) Holders(key string) []string {
	w.T.Helper()
	fields, err := w.RDB.HGetAll(w.T.Context(), key).Result()
	redistest.Must(w.T, err)
	var all []string
	for holder, count := range fields {
		all = append(all, holder+"="+count)
	}
	slices.Sort(all)
	return all
}

// WantTTL fails the test unless the lock's time to live is exactly d.
func (w *World) WantTTL(d time.Duration) {
	w.T.Helper()
	if got := w.PTTL(Name); got != d {
		w.T.Errorf("at %v: PTTL %v, want %v", w.Now(), got, d)
	}
}

// WantHolder fails the test unless owner alone holds the lock, with that count. For a count of 1 it
// also accepts 0: after a hand-over the new holder may not have set its count yet.
func (w *World) WantHolder(owner lease.Owner, count int) {
	w.T.Helper()
	want := []string{fmt.Sprintf("%s=%d", owner, count)}
	handed := []string{fmt.Sprintf("%s=0", owner)}
	if got := w.Holders(Name); !slices.Equal(got, want) && (count != 1 || !slices.Equal(got, handed)) {
		w.T.Errorf("at %v: held by %q, want %q", w.Now(), got, want)
	}
}

// WantFree fails the test if the lock's key exists.
func (w *World) WantFree() {
	w.T.Helper()
	if got := w.PTTL(Name); got != -2 {
		w.T.Errorf("at %v: still held by %q for %v", w.Now(), w.Holders(Name), got)
	}
}

// Messages subscribes to the channels. The function that it returns ends the subscription and
// returns the messages that came, each with its instant.
func (w *World) Messages(channels ...string) func() []string {
	w.T.Helper()
	ps := w.RDB.Subscribe(context.Background(), channels...)
	for range channels {
		redistest.Must(w.T, redistest.Err(ps.Receive(w.T.Context())))
	}
	var got []string
	var done sync.WaitGroup
	done.Go(func() {
		for {
			m, err := ps.ReceiveMessage(context.Background())
			if err != nil {
				return
			}
			got = append(got, fmt.Sprintf("%v %s", w.Now(), m.Payload))
		}
	})
	return func() []string {
		synctest.Wait()
		ps.Close()
		done.Wait()
		return got
	}
}
