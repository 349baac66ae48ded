// The holder, or the server that it uses, stands still or dies.

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
)

func TestWatchdogHoldsTenLeases(t *testing.T) {
	t.Parallel()
	const length = 300 * time.Millisecond
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	p := redistest.FeelPulse(t)
	a, b := clienttest.OpenClient(t, s.Client(t)), clienttest.OpenClient(t, s.Client(t))
	// held says whether the lock was held all the time. A lease is lost if it is not renewed. So
	// the loss says nothing about us if there was no processor to renew the lease.
	held := func() bool {
		l := clienttest.Grab(t, a.Mutex("x", holdfast.Renewed(length)))
		defer func() { _ = l.Release(clienttest.Generous(t)) }()
		for until := time.Now().Add(10 * length); time.Now().Before(until); time.Sleep(length / 20) {
			next, err := b.Mutex("x").TryLock(t.Context())
			if err == nil {
				clienttest.GiveBack(t, next)
			}
			there, existsErr := s.Admin().HExists(t.Context(), "x", l.Owner().String()).Result()
			if !errors.Is(err, holdfast.ErrBusy) || existsErr != nil || !there || l.Err() != nil {
				return false
			}
		}
		return true
	}
	for failed := 0; ; {
		began := time.Now()
		if held() {
			break
		}
		still := p.Slack(began, time.Now())
		if still < length/6 {
			t.Fatalf("a lock that is renewed was not held for ten leases (starved for %v)", still)
		}
		clienttest.MoreAttempts(t, &failed, 1, "for %v", still)
	}
	clienttest.GiveBack(t, clienttest.Grab(t, b.Mutex("x")))
}

// runHolder locks and holds until it is killed.
func runHolder(c *redistest.ChildContext) {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("LOCKS"), ClientName: "holder"})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()
	length, _ := time.ParseDuration(os.Getenv("LEASE"))
	l, err := client.Mutex(os.Getenv("NAME"), holdfast.Renewed(length)).Lock(c)
	if err != nil {
		c.Say("error %v", err)
		return
	}
	p, end := redistest.StartPulse()
	defer end()
	c.Say("locked %d", l.Token())
	for {
		line, ok := c.Next()
		switch {
		case !ok:
			return
		case line == "release":
			err := l.Release(c)
			c.Say("released %t %v", errors.Is(err, holdfast.ErrLost), err)
		case line == "tell":
			<-l.Done()
			c.Say("ended %d %t", time.Now().UnixNano(), errors.Is(l.Err(), holdfast.ErrLost))
		case strings.HasPrefix(line, "starved "):
			var from, to int64
			_, _ = fmt.Sscanf(line, "starved %d %d", &from, &to)
			c.Say("starved %d", p.Slack(time.Unix(0, from), time.Unix(0, to)))
		}
	}
}

// afterLeaseBound is how soon after the end of a dead holder's lease the next
// waiter has the lock.
const afterLeaseBound = 100 * time.Millisecond

func TestHolderKilled(t *testing.T) {
	t.Parallel()
	redistest.Undisturbed(t, 500*time.Millisecond, func(t testing.TB) {
		const length = 2 * time.Second
		s := redistest.Server(t)
		clienttest.LeaveNothing(t, s.Admin())
		p := redistest.FeelPulse(t)
		next := clienttest.OpenClient(t, s.Client(t))
		var late clienttest.Spread

		for i := range redistest.Count(t, 100) {
			name := fmt.Sprintf("killed%d", i)
			child := redistest.Start(t, "holder", map[string]string{
				"LOCKS": s.Addr(), "NAME": name, "LEASE": length.String(),
			})
			child.Expect("locked")
			granted := make(chan time.Time)
			go func() {
				l, err := next.Mutex(name).Lock(clienttest.Generous(t))
				at := time.Now()
				if err != nil {
					t.Errorf("Lock after the holder was killed: %v", err)
				} else {
					clienttest.GiveBack(t, l)
				}
				granted <- at
			}()
			time.Sleep(clienttest.UpTo(length)) // anywhere between two renewals
			child.Kill()
			hungUp(t, s, "holder") // a renewal that the holder has sent has run by then
			ends := expiryOf(t, s, name)
			at := <-granted
			if at.Before(ends) {
				t.Errorf("granted %v before the lease was over", ends.Sub(at))
			}
			d, slack := at.Sub(ends), p.Slack(ends, at)
			if d > afterLeaseBound+slack {
				t.Errorf("granted %v after the end of a killed holder's lease (starved for %v)", d, slack)
			}
			late.AddBeyond(d, slack)
		}
		clienttest.Figure(t, "holder killed: next grant after the end of its lease %v", &late)
	})
}

// hungUp waits until the server has no connection of that client name. By then the server has read
// everything that came on those connections.
func hungUp(t testing.TB, s *redistest.Proc, clientName string) {
	t.Helper()
	redistest.Eventually(t, 10*time.Second, "its connections are closed", func() error {
		list, err := s.Admin().ClientList(t.Context()).Result()
		if err == nil && strings.Contains(list, " name="+clientName+" ") {
			err = errors.New("some are open")
		}
		return err
	})
}

// expiryOf returns when the server will drop the key. The key must exist.
func expiryOf(t testing.TB, s *redistest.Proc, key string) time.Time {
	t.Helper()
	asked := time.Now()
	at, err := s.Admin().PExpireTime(t.Context(), key).Result()
	if err == nil && at > 0 {
		return time.UnixMilli(at.Milliseconds())
	}
	remaining, err := s.Admin().PTTL(t.Context(), key).Result() // before Redis 7
	if err != nil || remaining <= 0 {
		t.Fatalf("PTTL of %s = %v, %v", key, remaining, err)
	}
	return asked.Add(remaining)
}

// toldBound is how soon after SIGCONT a stopped holder is told that it has lost the lock.
const toldBound = 50 * time.Millisecond

// A stopped process learns of its loss as soon as it runs again, and then it changes nothing in
// Redis.
func TestHolderStoppedForLongerThanItsLease(t *testing.T) {
	t.Parallel()
	const length = 300 * time.Millisecond
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	next := clienttest.OpenClient(t, s.Client(t))
	start := func(lease time.Duration) *redistest.ChildProc {
		child := redistest.Start(t, "holder", map[string]string{
			"LOCKS": s.Addr(), "NAME": "stopped", "LEASE": lease.String(),
		})
		child.Expect("locked")
		return child
	}
	var told clienttest.Spread
	for range redistest.Count(t, 100) {
		child := start(length)
		child.Send("tell")
		time.Sleep(clienttest.UpTo(length)) // anywhere between two renewals
		child.Freeze()
		l := clienttest.Grab(t, next.Mutex("stopped"))
		before := redistest.Snapshot(t, s.Admin())
		thawed := time.Now()
		child.Thaw()
		after, slack := toldAfter(t, child, thawed)
		if after > toldBound+slack {
			t.Errorf("the holder was told of its loss %v after SIGCONT (starved for %v)", after, slack)
		}
		told.AddBeyond(after, slack)
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
	child := start(time.Minute) // this lease is not lost, however slow the machine is
	child.Send("release")
	child.Expect("released false <nil>")
	clienttest.Figure(t, "holder stopped for longer than its lease: told of the loss after SIGCONT %v", &told)
}

// toldAfter returns how long after the thaw the holder learned of its loss, and for how long the
// holder was starved meanwhile. The holder measures by its own clock, which is this process's clock
// too.
func toldAfter(t testing.TB, child *redistest.ChildProc, thawed time.Time) (after, slack time.Duration) {
	t.Helper()
	line := child.Expect("ended")
	var told, starved int64
	var lost bool
	if _, err := fmt.Sscan(line, &told, &lost); err != nil {
		t.Fatalf("the holder says %q: %v", line, err)
	}
	if !lost {
		t.Error("the holder's lease ended, and not with ErrLost")
	}
	child.Send("starved %d %d", thawed.UnixNano(), told)
	line = child.Expect("starved")
	if _, err := fmt.Sscan(line, &starved); err != nil {
		t.Fatalf("the holder says %q: %v", line, err)
	}
	return time.Duration(told - thawed.UnixNano()), time.Duration(starved)
}

// While Redis is silent nobody can say whether the hold is still there. So the holder counts it as
// lost at its own deadline, which comes before Redis's expiry. The test is about a few
// milliseconds, so no other test runs beside it.
func TestServerFrozenForLongerThanTheLease(t *testing.T) {
	const length = 3 * time.Second
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	p := redistest.FeelPulse(t)
	c := clienttest.OpenClient(t, s.Client(t))
	var ahead clienttest.Spread
	for range redistest.Count(t, 20) {
		leases := make(map[string]*holdfast.Lease)
		for i := range 50 {
			name := fmt.Sprintf("frozen%d", i)
			leases[name] = clienttest.Grab(t, c.Mutex(name, holdfast.Renewed(length)))
			time.Sleep(length / 150) // each in another phase of the third between two renewals
		}
		contexts := make(map[string]context.Context)
		expiry := make(map[string]time.Time)
		deadline := make(map[string]time.Time)
		for name, l := range leases {
			contexts[name] = l.Context(t.Context())
			deadline[name] = l.Deadline()
			expiry[name] = expiryOf(t, s, name)
		}
		s.Freeze()
		type loss struct {
			name string
			at   time.Time
		}
		losses := make(chan loss, len(leases))
		for name := range leases {
			context.AfterFunc(contexts[name], func() { losses <- loss{name, time.Now()} })
		}
		for range leases {
			lost := <-losses
			l := leases[lost.name]
			if cause := context.Cause(contexts[lost.name]); !errors.Is(cause, holdfast.ErrLost) {
				t.Errorf("the cause is %v, want ErrLost", cause)
			}
			by := l.Deadline()
			// Redis's expiry is what counts. The lease's own deadline is ahead of that expiry, and
			// a few ms pass until this goroutine has run.
			if over := lost.at.Sub(by); over > p.Slack(by, lost.at)+20*time.Millisecond {
				t.Errorf("told %v after its own deadline", over)
			}
			// A renewal that Redis answered before it froze may be read after it: then Redis's expiry
			// is not the one that was asked for.
			if ends := expiry[lost.name]; by.Equal(deadline[lost.name]) {
				if lost.at.Add(-p.Slack(by, lost.at)).After(ends) {
					t.Errorf("told %v after Redis's expiry", lost.at.Sub(ends))
				}
				ahead.Add(ends.Sub(lost.at))
			}
		}
		s.Thaw()
		for name, l := range leases {
			if err := l.Release(t.Context()); !errors.Is(err, holdfast.ErrLost) {
				t.Errorf("Release of a lost lease of %s = %v, want ErrLost", name, err)
			}
		}
		redistest.Eventually(t, 2*length, "the locks run out", func() error {
			if n, err := s.Admin().Exists(t.Context(), names(leases)...).Result(); err != nil || n > 0 {
				return fmt.Errorf("%d are there, %v", n, err)
			}
			return nil
		})
	}
	clienttest.Figure(t, "server frozen for longer than the lease (3 s): told ahead of Redis's expiry, least %v, median %v, of %d",
		ahead.At(0), ahead.At(50), len(ahead.All))
}

func names(leases map[string]*holdfast.Lease) []string {
	var all []string
	for name := range leases {
		all = append(all, name)
	}
	return all
}

func TestServerFrozenForLessThanHalfTheLease(t *testing.T) {
	t.Parallel()
	const length = time.Second
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	p := redistest.FeelPulse(t)
	c := clienttest.OpenClient(t, s.Client(t))
	survived, rounds, starved := 0, redistest.Count(t, 40), 0
	leases := clienttest.GrabMany(t, c, "frozen", 50, holdfast.Renewed(length))
	for survived < rounds*len(leases) {
		time.Sleep(clienttest.UpTo(length / 3)) // anywhere between two renewals
		began := time.Now()
		s.Freeze()
		time.Sleep(length * 45 / 100)
		s.Thaw()
		time.Sleep(length / 2)                                      // the next renewals go on by themselves
		if still := p.Slack(began, time.Now()); still > length/10 { // the client was frozen too
			clienttest.MoreAttempts(t, &starved, rounds, "for %v", still)
			releaseAnyway(t, leases)
			leases = clienttest.GrabMany(t, c, "frozen", 50, holdfast.Renewed(length))
			continue
		}
		for name, l := range leases {
			clienttest.StillHeld(t, s.Admin(), name, l)
			survived++
		}
		if t.Failed() {
			return
		}
	}
	clienttest.GiveBackAll(t, leases)
	clienttest.Figure(t, "server frozen for 0.45 leases %d times: %d of %d holds survived", rounds, survived, rounds*len(leases))
}
