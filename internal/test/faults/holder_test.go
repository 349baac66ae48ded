// The process of a holder is stopped; Redis's clock runs at another rate.

package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// runHolder locks and holds until it is killed.
func runHolder(c *redistest.ChildContext) {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("LOCKS"), ClientName: os.Getenv("NAME")})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()
	length, _ := time.ParseDuration(os.Getenv("LEASE"))
	l, err := client.Mutex(os.Getenv("NAME"), holdfast.Renewed(length)).Lock(c)
	if err != nil {
		c.Say("error %v", err)
		return
	}
	c.Say("locked %s", l.Owner())
	for line, ok := c.Next(); ok; line, ok = c.Next() {
		if line == "tell" {
			<-l.Done()
			c.Say("ended %t", errors.Is(l.Err(), holdfast.ErrLost))
		} else {
			err := l.Release(c)
			c.Say("released %t %v", errors.Is(err, holdfast.ErrLost), err)
		}
	}
}

// startHolder starts a process that holds the lock.
func startHolder(t *testing.T, s *redistest.Proc, name string, lease time.Duration) *redistest.ChildProc {
	t.Helper()
	child := redistest.Start(t, "holder", map[string]string{"LOCKS": s.Addr(), "NAME": name, "LEASE": lease.String()})
	child.Expect("locked")
	return child
}

// A stopped process learns of its loss once it runs again, and then it changes nothing in Redis.
func TestHolderStoppedForLongerThanItsLease(t *testing.T) {
	t.Parallel()
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	next := clienttest.OpenClient(t, s.Client(t))
	for range redistest.Count(t, 30) {
		child := startHolder(t, s, "stopped", 300*time.Millisecond)
		child.Send("tell")
		time.Sleep(clienttest.UpTo(300 * time.Millisecond)) // anywhere between two renewals
		child.Freeze()
		l := clienttest.Grab(t, next.Mutex("stopped"))
		before := redistest.Snapshot(t, s.Admin())
		child.Thaw()
		child.Expect("ended true")
		child.Send("release")
		if got := child.Expect("released"); !strings.HasPrefix(got, "true") {
			t.Errorf("Release of the stopped holder = %s, want ErrLost", got)
		}
		world.Equal(t, redistest.Snapshot(t, s.Admin()), before, "the stopped holder changed the next one's lock:\n%s\nwas\n%s", before)
		clienttest.GiveBack(t, l)
		child.Kill()
	}
	child := startHolder(t, s, "stopped", time.Minute) // this lease is not lost, however slow the machine is
	child.Send("release")
	child.Expect("released false <nil>")
}

func TestClocksOfDifferentRates(t *testing.T) {
	for _, rate := range []float64{1.01, 0.99} {
		for _, length := range []time.Duration{time.Second, 2 * time.Second, 30 * time.Second} {
			for what, option := range map[string]holdfast.LeaseOption{"fixed": holdfast.Fixed(length), "renewed": holdfast.Renewed(length)} {
				t.Run(fmt.Sprint(rate, " ", what, " ", length), func(t *testing.T) {
					world.Play(t, func(t *testing.T, w *world.World) {
						stop := w.Clock(func() time.Time { return w.Start.Add(time.Duration(float64(w.Now()) * rate)) })
						p := w.Process()
						l := w.Lock(t.Context(), p.Mutex(world.Name, option))
						time.Sleep(length * 6 / 10) // it has been renewed, if it is
						p.Unplug(true)
						ended := make(chan time.Duration, 1)
						context.AfterFunc(l.Context(t.Context()), func() { ended <- w.PTTL(world.Name) })
						if left := <-ended; left <= 0 {
							t.Errorf("the holder was notified when Redis had ended its lease")
						} else if most := length/50 + 15*time.Millisecond; left > most {
							t.Errorf("the holder was notified %v ahead, want at most %v", left, most)
						}
						time.Sleep(length / 10)
						w.WantFree()
						stop()
					})
				})
			}
		}
	}
}
