// The process of a holder dies or is stopped; Redis's clock runs at another rate; very many locks are renewed in time.

package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
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
		redistest.Must(t, err)
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

func TestClocksOfDifferentRates(t *testing.T) {
	for _, rate := range []float64{1.01, 0.99} {
		for _, length := range []time.Duration{time.Second, 2 * time.Second, 30 * time.Second} {
			for what, option := range map[string]holdfast.LeaseOption{"fixed": holdfast.Fixed(length), "renewed": holdfast.Renewed(length)} {
				t.Run(fmt.Sprint(rate, " ", what, " ", length), func(t *testing.T) {
					world.Play(t, func(t *testing.T, w *world.World) {
						stop := runAt(w, rate)
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

// runAt has the server's clock run at that rate, until stop is called.
func runAt(w *world.World, rate float64) (stop func()) {
	done := make(chan struct{})
	go func() {
		for {
			w.Mini.SetTime(w.Start.Add(time.Duration(float64(w.Now()) * rate)))
			select {
			case <-time.After(time.Millisecond):
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

func TestManyHeldLocks(t *testing.T) {
	redistest.Undisturbed(t, time.Second, func(t testing.TB) {
		const many, length = 10_000, 6 * time.Second
		s := redistest.Server(t)
		clienttest.LeaveNothing(t, s.Admin())
		p := redistest.FeelPulse(t)
		c := clienttest.OpenClient(t, s.Client(t))
		clienttest.GiveBackAll(t, clienttest.GrabMany(t, c, "warm", 200)) // opens everything that the Client opens anyway
		before := runtime.NumGoroutine()
		leases := clienttest.GrabMany(t, c, "held", many, holdfast.Renewed(length))
		if grown := runtime.NumGoroutine() - before; grown > 20 {
			t.Errorf("%d goroutines more with %d locks held", grown, many)
		}
		began := time.Now()
		late := watchRenewals(leases, length)
		if n := len(late); n < 2*many {
			t.Fatalf("%d renewals of %d locks in %v", n, many, length)
		}
		p99 := late[len(late)*99/100]
		if slack := p.Slack(began, time.Now()); p99 > length/10+slack {
			t.Errorf("renewals were late: p99 %v (starved for %v)", p99, slack)
		}
		for name, l := range leases {
			if err := l.Err(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		clienttest.GiveBackAll(t, leases)
		clienttest.Figure(t, "%d locks held for a lease of %v: renewals late by p50 %v, p99 %v, worst %v; none lost",
			many, length, late[len(late)/2], p99, late[len(late)-1])
	})
}

// watchRenewals watches leases for as long as each of them lasts, and returns how late their renewals were
// sent. A renewal is due a third of the lease after the one before it. It moves the deadline by the time
// between the two.
func watchRenewals(leases map[string]*holdfast.Lease, length time.Duration) (late []time.Duration) {
	deadlines := make(map[string]time.Time, len(leases))
	for name, l := range leases {
		deadlines[name] = l.Deadline()
	}
	for until := time.Now().Add(length); time.Now().Before(until); time.Sleep(length / 20) {
		for name, l := range leases {
			deadline := l.Deadline()
			if moved := deadline.Sub(deadlines[name]); moved > 0 {
				late = append(late, max(0, moved-length/3))
				deadlines[name] = deadline
			}
		}
	}
	slices.Sort(late)
	return late
}
