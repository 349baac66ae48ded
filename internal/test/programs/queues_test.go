// Random queues: goroutines of two processes want one lock, while the network of one process fails
// a step at a time. Two never hold the lock, tokens grow, no waiter waits beside a free lock while
// nothing is wrong, and no place is left in the queue:
// go test -run TestRandomQueues -rapid.checks=10000 ./internal/test/programs

package programs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/rapidtest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// queueKinds are the kinds of lock that have a queue.
var queueKinds = map[string]func(c *holdfast.Client, name string, lease holdfast.LeaseOption) holdfast.Locker{
	"mutex": func(c *holdfast.Client, name string, lease holdfast.LeaseOption) holdfast.Locker {
		return c.Mutex(name, lease)
	},
	"mutex without cohorts": func(c *holdfast.Client, name string, lease holdfast.LeaseOption) holdfast.Locker {
		return c.Mutex(name, lease, holdfast.Cohort(0, 0))
	},
	"fair": func(c *holdfast.Client, name string, lease holdfast.LeaseOption) holdfast.Locker {
		return c.FairMutex(name, lease)
	},
}

// queues is one program under way.
type queues struct {
	w     *world.World
	name  string
	lock  func(c *holdfast.Client, name string, lease holdfast.LeaseOption) holdfast.Locker
	lease time.Duration
	p     *world.Process    // the process whose network fails
	all   [2]*world.Process // p, and a process whose network does not fail

	waits    []*queuer
	held     []*queuer
	releases []*queuer
	token    int64         // of the last grant
	free     time.Duration // when the lock was free, at the latest, if nobody holds it
	idle     time.Duration // when a call was last under way, or the lock held

	mu    sync.Mutex
	felt  time.Duration // until then a fault of the network may have an effect
	deaf  time.Duration // until then the server refuses p
	fault func(world.Sending) redistest.Fault
	story []string
}

// queuer is one call of Lock or TryLock, and what comes of it.
type queuer struct {
	what   string
	began  time.Duration
	cancel context.CancelFunc
	done   chan struct{} // closed when the call, or the release, has returned
	at     time.Duration // when it returned
	lease  *holdfast.Lease
	err    error
}

func TestRandomQueues(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		programs := 0
		var all [2]*world.Process
		rapidtest.Check(t, func(rt *rapid.T) {
			if all[0] == nil {
				all = [2]*world.Process{w.Process(), w.Process()}
			}
			programs++
			p := all[0]
			g := &queues{w: w, name: fmt.Sprintf("queue %d!", programs), p: p, all: all}
			kinds := slices.Sorted(maps.Keys(queueKinds))
			g.lock = queueKinds[rapid.SampledFrom(kinds).Draw(rt, "kind")]
			g.lease = rapid.SampledFrom([]time.Duration{150 * time.Millisecond, 2 * time.Second, 30 * time.Second}).Draw(rt, "lease")
			p.Each(g.meets)
			defer func() {
				g.over(rt)
				if rt.Failed() {
					all[0] = nil // the next program begins with new processes
				}
			}()
			rt.Repeat(g.actions(rt))
		})
	})
}

// actions draws the program's actions: a few that every program has, and some of the others. With
// fewer actions a program goes deeper into each.
func (g *queues) actions(rt *rapid.T) map[string]func(*rapid.T) {
	all := map[string]func(*rapid.T){
		"try": g.try, "cancel": g.cancel, "fault": g.upset, "hang up": g.hangUp, "deafen": g.deafen, "mute": g.mute, "moment": g.moment,
	}
	chosen := map[string]func(*rapid.T){"wait": g.wait, "wait more": g.wait, "release": g.release, "while": g.while, "": g.check}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if rapid.Bool().Draw(rt, name) {
			chosen[name] = all[name]
		}
	}
	return chosen
}

func (g *queues) note(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.story = append(g.story, fmt.Sprintf("%v: ", g.w.Now())+fmt.Sprintf(format, args...))
}

func (g *queues) fatal(rt *rapid.T, format string, args ...any) {
	g.note(format, args...)
	g.mu.Lock()
	defer g.mu.Unlock()
	rt.Fatalf("%s", strings.Join(g.story, "\n"))
}

// feel notes that something is wrong with the network for d.
func (g *queues) feel(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.felt = max(g.felt, g.w.Now()+d+afterStorm)
}

// call begins a call of a process, mostly of the process whose network fails.
func (g *queues) call(rt *rapid.T, what string, f func(holdfast.Locker, context.Context) (*holdfast.Lease, error)) {
	process := max(0, rapid.IntRange(-2, 1).Draw(rt, "process"))
	lock := g.lock(g.all[process].Client, g.name, holdfast.Renewed(g.lease))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	c := &queuer{what: fmt.Sprint(what, " of process ", process), began: g.w.Now(), cancel: cancel, done: make(chan struct{})}
	g.waits = append(g.waits, c)
	g.note("%s", c.what)
	go func() {
		defer close(c.done)
		c.lease, c.err = f(lock, ctx)
		c.at = g.w.Now()
	}()
	synctest.Wait()
}

func (g *queues) wait(rt *rapid.T) {
	if len(g.waits) > 3 {
		rt.Skip()
	}
	g.call(rt, "lock", holdfast.Locker.Lock)
}

func (g *queues) try(rt *rapid.T) { g.call(rt, "try", holdfast.Locker.TryLock) }

func (g *queues) cancel(rt *rapid.T) {
	if len(g.waits) == 0 {
		rt.Skip()
	}
	c := rapid.SampledFrom(g.waits).Draw(rt, "call")
	g.note("%s, begun at %v, is cancelled", c.what, c.began)
	c.cancel()
	synctest.Wait()
}

func (g *queues) release(rt *rapid.T) {
	if len(g.held) == 0 {
		rt.Skip()
	}
	c := g.held[0]
	g.held = g.held[1:]
	g.note("%d is released", c.lease.Token())
	g.giveBack(c)
	synctest.Wait()
}

// giveBack releases the lease that a call was granted, on a goroutine of its own.
func (g *queues) giveBack(c *queuer) {
	c.done = make(chan struct{})
	g.releases = append(g.releases, c)
	go func() {
		defer close(c.done)
		c.err = c.lease.Release(context.Background())
		c.at = g.w.Now()
	}()
}

// upset has one of the next scripts of p meet a fault.
func (g *queues) upset(rt *rapid.T) {
	late := rapid.SampledFrom([]time.Duration{20 * time.Millisecond, 700 * time.Millisecond, latest}).Draw(rt, "late")
	held := make(chan struct{})
	const orphan = 5 // a late request, which p has sent again meanwhile on a new connection
	i := rapid.IntRange(0, orphan).Draw(rt, "fault")
	fault := []redistest.Fault{
		redistest.HoldReply(held), redistest.HoldReply(held), redistest.Delay(late), redistest.CloseAfterExec, redistest.Duplicate, redistest.Delay(late),
	}[i]
	which := rapid.SampledFrom([]string{"", world.LockRun, world.EnterRun, world.ReleaseRun}).Draw(rt, "script")
	after := rapid.SampledFrom([]int32{1, 1, 2}).Draw(rt, "the how manieth")
	before := g.fault
	var seen atomic.Int32
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fault = func(s world.Sending) redistest.Fault {
		if which != "" && s.Script != which || seen.Add(1) != after {
			if before != nil {
				return before(s)
			}
			return redistest.Pass
		}
		g.note("%s meets fault %d, late by %v", s.Script, i, late)
		if i > 1 {
			g.feel(late)
		} else {
			g.feel(late - afterStorm) // when it is heard all is well
		}
		if i == orphan {
			time.AfterFunc(time.Millisecond, g.p.HangUp)
		}
		time.AfterFunc(late, func() { close(held) })
		return fault
	}
}

// meets decides what happens to a script of p.
func (g *queues) meets(s world.Sending) redistest.Fault {
	g.mu.Lock()
	deaf, fault := g.w.Now() < g.deaf, g.fault
	g.mu.Unlock()
	if fault != nil {
		if f := fault(s); f != redistest.Fault(redistest.Pass) {
			return f
		}
	}
	if deaf {
		return redistest.ReplyError("ERR max number of clients reached")
	}
	return redistest.Pass
}

func (g *queues) hangUp(*rapid.T) {
	g.note("p hangs up")
	g.feel(0)
	g.p.HangUp()
	synctest.Wait()
}

// deafen makes the server refuse p, for less time than a clean-up goes on.
func (g *queues) deafen(rt *rapid.T) {
	lasts := time.Duration(rapid.SampledFrom([]int{100, 700, 1500}).Draw(rt, "deaf for ms")) * time.Millisecond
	g.mu.Lock()
	if g.w.Now() < g.deaf+time.Second {
		g.mu.Unlock()
		rt.Skip()
	}
	g.deaf = g.w.Now() + lasts
	g.mu.Unlock()
	g.note("p is deaf for %v", lasts)
	g.feel(lasts)
}

// mute keeps p from reading messages, or lets it read them again.
func (g *queues) mute(*rapid.T) {
	if g.muted() {
		g.p.Unmute()
	} else {
		g.p.Mute()
	}
	g.note("p is mute: %v", g.muted())
	g.feel(0)
	synctest.Wait()
}

func (g *queues) muted() bool {
	return g.p.Muted()
}

func (g *queues) moment(rt *rapid.T) {
	time.Sleep(time.Duration(rapid.SampledFrom([]int{1, 5, 20}).Draw(rt, "ms")) * time.Millisecond)
}

func (g *queues) while(rt *rapid.T) {
	for range rapid.SampledFrom([]int{1, 6, 14, 28}).Draw(rt, "slices of 100 ms") {
		time.Sleep(100 * time.Millisecond)
		g.check(rt)
	}
}

// check collects the results of calls, and checks what must be true in every state.
func (g *queues) check(rt *rapid.T) {
	synctest.Wait()
	g.releases = g.ended(g.releases, func(c *queuer) {
		g.note("released: %v", c.err)
		g.free = max(g.free, c.at)
		if c.err != nil {
			g.free += g.lease // what is left of it runs out
		}
	})
	var granted []*queuer
	g.waits = g.ended(g.waits, func(c *queuer) {
		c.cancel()
		if c.err == nil {
			granted = append(granted, c)
			return
		}
		g.note("%s, begun at %v: %v", c.what, c.began, c.err)
		if !errors.Is(c.err, holdfast.ErrBusy) && !errors.Is(c.err, holdfast.ErrLost) && !errors.Is(c.err, holdfast.ErrUnavailable) &&
			!errors.Is(c.err, context.Canceled) && !errors.Is(c.err, context.DeadlineExceeded) {
			g.fatal(rt, "which it must not be")
		}
	})
	slices.SortFunc(granted, func(a, b *queuer) int { return int(a.at - b.at) })
	for _, c := range granted {
		g.note("%s, begun at %v: granted at %v with %d to %v", c.what, c.began, c.at, c.lease.Token(), c.lease.Owner())
		if c.lease.Token() <= g.token {
			g.fatal(rt, "after %d", g.token)
		}
		g.token = c.lease.Token()
		g.held = append(g.held, c)
	}
	g.held = slices.DeleteFunc(g.held, func(c *queuer) bool {
		if c.lease.Err() != nil {
			g.note("%d is lost", c.lease.Token())
			g.free = max(g.free, g.w.Now()+g.lease) // as late as that it may have been renewed
			g.giveBack(c)
			return true
		}
		return false
	})
	if len(g.held) > 1 {
		g.fatal(rt, "two hold it")
	}
	g.prompt(rt)
	if len(g.waits)+len(g.held)+len(g.releases) > 0 {
		g.idle = g.w.Now()
	} else if g.w.Now() > g.clean() {
		g.wantNoQueue(rt)
	}
}

// clean returns when the clean-up after all calls must be over.
func (g *queues) clean() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(g.idle+givenUp, g.felt-afterStorm+unqueued)
}

// ended returns all without the calls, or releases, that have returned, and hands those to took.
func (g *queues) ended(all []*queuer, took func(*queuer)) []*queuer {
	return slices.DeleteFunc(all, func(c *queuer) bool {
		select {
		case <-c.done:
			took(c)
			return true
		default:
			return false
		}
	})
}

// prompt fails the program if a call has waited beside a free lock while nothing was wrong.
func (g *queues) prompt(rt *rapid.T) {
	g.mu.Lock()
	calm := g.felt
	g.mu.Unlock()
	if len(g.held) > 0 || len(g.releases) > 0 || g.muted() {
		return
	}
	for _, c := range g.waits {
		if since := max(g.free, c.began, calm); g.w.Now()-since > promptly {
			g.fatal(rt, "%s has waited beside a free lock since %v", c.what, since)
		}
	}
}

// over ends the program: the network works again, all calls end, and nothing is left in Redis.
func (g *queues) over(rt *rapid.T) {
	g.mu.Lock()
	g.deaf, g.fault = 0, nil
	g.mu.Unlock()
	g.p.Unmute()
	for _, c := range g.waits {
		c.cancel()
		<-c.done
		if c.lease != nil {
			g.held = append(g.held, c)
		}
	}
	for _, c := range g.held {
		g.giveBack(c)
	}
	for _, c := range g.releases {
		<-c.done
	}
	g.idle = g.w.Now()
	time.Sleep(g.clean() - g.w.Now())
	synctest.Wait()
	g.wantNoQueue(rt)
	time.Sleep(time.Minute)
	g.wantNoQueue(rt)
	if ttl := g.w.PTTL(g.name); ttl != -2 && !rt.Failed() {
		g.fatal(rt, "it is left, for %v", ttl)
	}
	g.w.Mini.Del(world.AllTokens + "{" + g.name + "}") // or there are ever more of them
	for _, p := range g.all {
		p.Each(nil)
		p.Forget()
	}
}

// wantNoQueue fails the program if Redis still keeps a place in the queue.
func (g *queues) wantNoQueue(rt *rapid.T) {
	key := "holdfast_lock_alive:{" + g.name + "}"
	places, err := g.w.Mini.SortedSet(key)
	if err != nil {
		return // there is no such key
	}
	for owner, until := range places {
		if left := time.Until(time.UnixMilli(int64(until))); left > 0 && !rt.Failed() {
			g.fatal(rt, "nobody waits any more, and %s has a place in the queue for %v", owner, left)
		}
	}
}
