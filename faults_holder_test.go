// The holder, and the server under it, stand still or die.

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestWatchdogHoldsTenLeases(t *testing.T) {
	t.Parallel()
	const length = 300 * time.Millisecond
	s := redistest.Server(t)
	leaveNothing(t, s.Admin())
	a, b := openClient(t, s.Client(t)), openClient(t, s.Client(t))
	l := grab(t, a.Mutex("x", holdfast.Renewed(length)))

	for until := time.Now().Add(10 * length); time.Now().Before(until); time.Sleep(length / 20) {
		stillHeld(t, s.Admin(), "x", l)
		if _, err := b.Mutex("x").TryLock(t.Context()); !errors.Is(err, holdfast.ErrBusy) {
			t.Fatalf("TryLock of another = %v, want ErrBusy", err)
		}
	}
	giveBack(t, l)
	giveBack(t, grab(t, b.Mutex("x")))
}

// runHolder locks and holds until it is killed.
func runHolder(c *redistest.ChildContext) {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("LOCKS")})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()
	length, _ := time.ParseDuration(os.Getenv("LEASE"))
	l, err := client.Mutex(os.Getenv("NAME"), holdfast.Renewed(length)).Lock(c)
	if err != nil {
		c.Say("error %v", err)
		return
	}
	c.Say("locked %d", l.Token())
	for {
		line, ok := c.Next()
		switch {
		case !ok:
			return
		case line == "release":
			c.Say("released %v", l.Release(c))
		case line == "err":
			c.Say("err %v", l.Err())
		}
	}
}

func TestHolderKilled(t *testing.T) {
	t.Parallel()
	const length = 500 * time.Millisecond
	s := redistest.Server(t)
	leaveNothing(t, s.Admin())
	p := feelPulse(t)
	next := openClient(t, s.Client(t))
	var late spread

	for i := range redistest.Count(t, 100) {
		name := fmt.Sprintf("killed%d", i)
		child := redistest.Start(t, "holder", map[string]string{
			"LOCKS": s.Addr(), "NAME": name, "LEASE": length.String(),
		})
		child.Expect("locked")
		granted := make(chan time.Time)
		go func() {
			l, err := next.Mutex(name).Lock(generous(t))
			at := time.Now()
			if err != nil {
				t.Errorf("Lock after the holder was killed: %v", err)
			} else {
				giveBack(t, l)
			}
			granted <- at
		}()
		time.Sleep(upTo(length)) // anywhere between two renewals
		child.Kill()
		asked := time.Now()
		remaining, err := s.Admin().PTTL(t.Context(), name).Result()
		if err != nil || remaining <= 0 {
			t.Fatalf("PTTL after the kill = %v, %v", remaining, err)
		}
		at := <-granted
		ends := asked.Add(remaining)
		if at.Before(ends.Add(-2 * time.Millisecond)) { // PTTL is in whole ms, and is asked after asked
			t.Errorf("granted %v before the lease was over", ends.Sub(at))
		}
		p.within(t, "the grant after the end of a killed holder's lease", ends, 100*time.Millisecond)
		late.add(at.Sub(ends))
	}
	figure(t, "holder killed: next grant after the end of its lease %v", &late)
}

// A stopped process must learn of its loss first thing, and then touch nothing.
func TestHolderStoppedForLongerThanItsLease(t *testing.T) {
	t.Parallel()
	const length = 300 * time.Millisecond
	s := redistest.Server(t)
	leaveNothing(t, s.Admin())
	next := openClient(t, s.Client(t))
	child := redistest.Start(t, "holder", map[string]string{
		"LOCKS": s.Addr(), "NAME": "stopped", "LEASE": length.String(),
	})
	for range redistest.Count(t, 20) {
		child.Expect("locked")
		child.Freeze()
		l := grab(t, next.Mutex("stopped"))
		before := redistest.Snapshot(t, s.Admin())
		child.Thaw()
		child.Send("release")
		if got := child.Expect("released"); got == "<nil>" {
			t.Error("the release of the stopped holder says that it released")
		}
		if after := redistest.Snapshot(t, s.Admin()); after != before {
			t.Errorf("the stopped holder changed the next one's lock:\n%s\nwas\n%s", after, before)
		}
		giveBack(t, l)
		child.Kill()
		child = redistest.Start(t, "holder", map[string]string{
			"LOCKS": s.Addr(), "NAME": "stopped", "LEASE": length.String(),
		})
	}
	child.Expect("locked")
	child.Send("release")
	child.Expect("released <nil>")
}

// While Redis is silent nobody can say whether the lock is still there, so the
// holder counts it as lost at its own deadline, which is before Redis's.
func TestServerFrozenForLongerThanTheLease(t *testing.T) {
	t.Parallel()
	const length = time.Second
	s := redistest.Server(t)
	leaveNothing(t, s.Admin())
	p := feelPulse(t)
	c := openClient(t, s.Client(t))
	var ahead spread
	for range redistest.Count(t, 20) {
		leases := make(map[string]*holdfast.Lease)
		for i := range 50 {
			name := fmt.Sprintf("frozen%d", i)
			leases[name] = grab(t, c.Mutex(name, holdfast.Renewed(length)))
			time.Sleep(length / 150) // each in another phase between two renewals
		}
		contexts := make(map[string]context.Context)
		expiry := make(map[string]time.Time)
		deadline := make(map[string]time.Time)
		for name, l := range leases {
			contexts[name] = l.Context(t.Context())
			deadline[name] = l.Deadline()
			ms, err := s.Admin().PExpireTime(t.Context(), name).Result()
			if err != nil {
				t.Fatal(err)
			}
			expiry[name] = time.UnixMilli(ms.Milliseconds())
		}
		s.Freeze()
		for name, l := range leases {
			if !l.Deadline().Equal(deadline[name]) {
				expiry[name] = time.Time{} // renewed since: Redis's expiry is not known
			}
		}
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
			// What counts is Redis's expiry. Its own deadline is ahead of that; a few
			// ms pass until this goroutine has run.
			if over := lost.at.Sub(by); over > p.slack(by, lost.at)+20*time.Millisecond {
				t.Errorf("told %v after its own deadline", over)
			}
			if ends := expiry[lost.name]; !ends.IsZero() {
				if lost.at.Add(-p.slack(by, lost.at)).After(ends) {
					t.Errorf("told %v after Redis's expiry", lost.at.Sub(ends))
				}
				ahead.add(ends.Sub(lost.at))
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
	figure(t, "server frozen for longer than the lease (1 s): told ahead of Redis's expiry, least %v, median %v, of %d",
		ahead.at(0), ahead.at(50), len(ahead.all))
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
	leaveNothing(t, s.Admin())
	p := feelPulse(t)
	c := openClient(t, s.Client(t))
	survived, rounds := 0, redistest.Count(t, 40)
	leases := grabMany(t, c, "frozen", 50, holdfast.Renewed(length))
	for starved := 0; survived < rounds*len(leases); {
		time.Sleep(upTo(length / 3)) // anywhere between two renewals
		began := time.Now()
		s.Freeze()
		time.Sleep(length * 45 / 100)
		s.Thaw()
		time.Sleep(length / 2) // the next renewals go on by themselves
		if still := p.slack(began, time.Now()); still > length/10 {
			// The client was frozen too: a round that does not count.
			if starved++; starved > 2*rounds {
				t.Skipf("the machine stood still for %v", still)
			}
			releaseAnyway(t, leases)
			leases = grabMany(t, c, "frozen", 50, holdfast.Renewed(length))
			continue
		}
		for name, l := range leases {
			stillHeld(t, s.Admin(), name, l)
			survived++
		}
		if t.Failed() {
			return
		}
	}
	giveBackAll(t, leases)
	figure(t, "server frozen for 0.45 leases %d times: %d of %d holds survived", rounds, survived, rounds*len(leases))
}
