// The process of a holder dies or is stopped.

package faults

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
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

// startHolder starts a process that holds the lock, and returns it with the owner of its lease.
func startHolder(t *testing.T, s *redistest.Proc, name string, lease time.Duration) (child *redistest.ChildProc, owner string) {
	t.Helper()
	child = redistest.Start(t, "holder", map[string]string{"LOCKS": s.Addr(), "NAME": name, "LEASE": lease.String()})
	return child, child.Expect("locked")
}

// The next one is granted the lock when the lease of the one that was killed is over, and not before.
func TestHolderKilled(t *testing.T) {
	t.Parallel()
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	next := clienttest.OpenClient(t, s.Client(t)).Mutex("killed")
	for range redistest.Count(t, 30) {
		child, owner := startHolder(t, s, "killed", 2*time.Second)
		var ends time.Time
		l, err := beside(func() (*holdfast.Lease, error) { return next.Lock(clienttest.Generous(t)) }, func() error {
			time.Sleep(clienttest.UpTo(2 * time.Second)) // anywhere between two renewals
			child.Kill()
			hungUp(t, s, "killed") // a renewal that the holder has sent has run by then
			asked := time.Now()
			var left *redis.DurationCmd
			var held *redis.BoolCmd
			_, err := s.Admin().TxPipelined(t.Context(), func(p redis.Pipeliner) error {
				held, left = p.HExists(t.Context(), "killed", owner), p.PTTL(t.Context(), "killed")
				return nil
			})
			if held.Val() { // on a machine that stands still it may be over
				ends = asked.Add(left.Val() - time.Millisecond)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if early := time.Until(ends); early > 0 {
			t.Errorf("granted %v before the lease was over", early)
		}
		clienttest.GiveBack(t, l)
	}
}

// hungUp waits until the server has no connection of that client name. By then the server has read
// everything that came on those connections.
func hungUp(t *testing.T, s *redistest.Proc, clientName string) {
	t.Helper()
	redistest.Eventually(t, time.Minute, "its connections are closed", func() error {
		list, err := s.Admin().ClientList(t.Context()).Result()
		if err == nil && strings.Contains(list, " name="+clientName+" ") {
			err = errors.New("some are open")
		}
		return err
	})
}

// A stopped process learns of its loss once it runs again, and then it changes nothing in Redis.
func TestHolderStoppedForLongerThanItsLease(t *testing.T) {
	t.Parallel()
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	next := clienttest.OpenClient(t, s.Client(t))
	for range redistest.Count(t, 30) {
		child, _ := startHolder(t, s, "stopped", 300*time.Millisecond)
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
		if after := redistest.Snapshot(t, s.Admin()); after != before {
			t.Errorf("the stopped holder changed the next one's lock:\n%s\nwas\n%s", after, before)
		}
		clienttest.GiveBack(t, l)
		child.Kill()
	}
	child, _ := startHolder(t, s, "stopped", time.Minute) // this lease is not lost, however slow the machine is
	child.Send("release")
	child.Expect("released false <nil>")
}
