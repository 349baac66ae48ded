// Random queues: goroutines of two processes want one lock, while the network of one process fails
// a step at a time, or a storm makes that of both fail. Two never hold the lock, tokens grow, no waiter waits
// beside a free lock while nothing is wrong, and no place is left in the queue:
// go test -run TestRandomQueues -rapid.checks=10000 ./internal/test/programs

package programs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
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

const (
	// afterStorm is how long a fault may be felt after its request has ended. In that time the
	// client cleans up what the request may have left, at the latest when the request cannot be
	// executed any more.
	afterStorm = 3 * time.Second
	// unqueued is how long after such a fault the queue may keep a place without a waiter.
	unqueued = 1500 * time.Millisecond
	// silent is how long the client may use a connection on which nothing arrives any more. The
	// client gives up a request after its read timeout of 3 s, even a request that it sent just
	// before it gave up the connection. On a subscription the client asks for a sign of life.
	silent = 12 * time.Second
	// givenUp is how long a request may hold the lock after its caller left while the request was
	// on its way. For a second Redis may still execute the request, and then the client undoes it.
	givenUp = 1100 * time.Millisecond
	// polls is how long a waiter sleeps at the most, if a lease runs out and nobody tells.
	polls = 1300 * time.Millisecond
	// promptly is how long a waiter may wait for a free lock while nothing lags. In 3 ms of that
	// time the lock is left to Redisson's threads. While requests and messages lag, a hand-over may
	// take as many lags more as requests and messages follow each other in it.
	promptly, lagsOfAHandOver = 100 * time.Millisecond, 10
)

// queueKinds are the names of the kinds of lock that goroutines wait for.
var queueKinds = []string{"mutex", "mutex without cohorts", "fair", "fair", "write", "write"}

// queues is one program under way.
type queues struct {
	story
	name  string
	kind  string
	lease time.Duration
	wild  bool              // some leases are fixed, replies lag, and there are storms
	lag   time.Duration     // the longest time that a reply takes
	all   [2]*world.Process // the network of the first fails

	waits    []*queuer
	held     []*queuer
	releases []*queuer
	token    int64         // of the last grant
	free     time.Duration // when the lock was free, at the latest, if nobody holds it
	idle     time.Duration // when a call was last under way, or the lock held

	// story.mu protects these.
	deaf  time.Duration // until then the server refuses the first process
	storm time.Duration // until then scripts of both meet faults
	dice  *rand.Rand
	fault func(world.Sending) redistest.Fault
}

// queuer is one call of Lock or TryLock, and what comes of it. It is then the release.
type queuer struct {
	call
	process int
	reads   bool
	outer   *queuer // it re-enters that hold, or reads under it
	lease   *holdfast.Lease
}

// beside reports whether both may hold the lock at a time.
func (c *queuer) beside(other *queuer) bool {
	root := func(c *queuer) *queuer {
		for c.outer != nil {
			c = c.outer
		}
		return c
	}
	return root(c) == root(other) || c.reads && other.reads
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
			g := &queues{story: story{w: w}, name: fmt.Sprintf("queue %d!", programs), all: all}
			g.kind = rapid.SampledFrom(queueKinds).Draw(rt, "kind")
			g.lease = rapid.SampledFrom([]time.Duration{150 * time.Millisecond, 2 * time.Second, 30 * time.Second}).Draw(rt, "lease")
			if g.wild = rapid.IntRange(0, 3).Draw(rt, "wild") == 3; g.wild {
				g.lag = rapid.SampledFrom([]time.Duration{0, 3 * time.Millisecond, 50 * time.Millisecond}).Draw(rt, "lag")
			}
			g.dice = rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "dice"), 0))
			for i, p := range all {
				p.Each(func(s world.Sending) redistest.Fault { return g.meets(i, s) })
			}
			defer func() {
				g.over(rt)
				if rt.Failed() {
					all[0] = nil // the next program begins with new processes
				}
			}()
			chosen := some(rt, actions{
				"try": g.try, "cancel": g.cancel, "nested": g.nested, "moment": g.moment,
				"fault": g.upset, "hang up": g.hangUp, "deafen": g.deafen, "mute": g.mute,
			})
			if g.wild {
				chosen["storm"] = g.storms
			}
			chosen["wait"], chosen["wait more"], chosen["release"], chosen["while"], chosen[""] = g.wait, g.wait, g.release, g.while, g.check
			rt.Repeat(chosen)
		})
	})
}

// locker returns the lock as a process has it, and draws what its leases are like.
func (g *queues) locker(rt *rapid.T, process int, reads bool) holdfast.Locker {
	options := []holdfast.LeaseOption{holdfast.Renewed(g.lease)}
	if g.wild && rapid.IntRange(0, 2).Draw(rt, "fixed") == 2 {
		options[0] = holdfast.Fixed(g.lease)
	}
	kind := g.kind
	switch {
	case kind == "mutex without cohorts":
		kind, options = "mutex", append(options, holdfast.Cohort(0, 0))
	case reads:
		kind = "read"
	}
	return kindOf(kind).Locker(g.all[process].Client, g.name, options...)
}

// ask begins a call.
func (g *queues) ask(rt *rapid.T, what string, c *queuer, parent context.Context, f func(holdfast.Locker, context.Context) (*holdfast.Lease, error)) {
	lock := g.locker(rt, c.process, c.reads)
	g.waits = append(g.waits, c)
	g.begin(&c.call, fmt.Sprintf("%s of process %d, reads: %v", what, c.process, c.reads), parent, 20*time.Second, func(ctx context.Context) (err error) {
		c.lease, err = f(lock, ctx)
		return err
	})
}

// anyone draws a caller: mostly of the process whose network fails.
func (g *queues) anyone(rt *rapid.T) *queuer {
	c := &queuer{process: max(0, rapid.IntRange(-2, 1).Draw(rt, "process"))}
	c.reads = g.kind == "write" && rapid.IntRange(0, 2).Draw(rt, "reads") > 0
	return c
}

func (g *queues) wait(rt *rapid.T) {
	if len(g.waits) > 3 {
		rt.Skip()
	}
	g.ask(rt, "lock", g.anyone(rt), context.Background(), holdfast.Locker.Lock)
}

func (g *queues) try(rt *rapid.T) {
	g.ask(rt, "try", g.anyone(rt), context.Background(), holdfast.Locker.TryLock)
}

// nested re-enters a hold, or reads under one that writes.
func (g *queues) nested(rt *rapid.T) {
	if len(g.held) == 0 {
		rt.Skip()
	}
	outer := rapid.SampledFrom(g.held).Draw(rt, "hold")
	c := &queuer{process: outer.process, reads: outer.reads, outer: outer}
	if g.kind == "write" && !outer.reads {
		c.reads = rapid.Bool().Draw(rt, "reads")
	}
	g.ask(rt, "nested lock", c, outer.lease.Context(context.Background()), holdfast.Locker.Lock)
}

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
	g.giveBack(c)
}

// giveBack releases the lease that a call was granted.
func (g *queues) giveBack(c *queuer) {
	g.releases = append(g.releases, c)
	g.begin(&c.call, fmt.Sprintf("release of %d", c.lease.Token()), context.Background(), time.Hour, c.lease.Release)
}

// upset has one of the next scripts of the first process meet a fault.
func (g *queues) upset(rt *rapid.T) {
	late := rapid.SampledFrom([]time.Duration{20 * time.Millisecond, 700 * time.Millisecond, latest}).Draw(rt, "late")
	const orphan = 5 // a late request, which the process has sent again meanwhile on a new connection
	i := rapid.IntRange(0, orphan).Draw(rt, "fault")
	fault := []redistest.Fault{
		redistest.DelayReply(late), redistest.DelayReply(late), redistest.Delay(late), redistest.CloseAfterExec, redistest.Duplicate, redistest.Delay(late),
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
			g.upsets(late)
		} else {
			g.feel(late) // when it is heard all is well
		}
		if i == orphan {
			time.AfterFunc(time.Millisecond, g.all[0].HangUp)
		}
		return fault
	}
}

// upsets notes that something is wrong for d, after which it may still be felt.
func (g *queues) upsets(d time.Duration) { g.feel(d + afterStorm) }

// meets decides what happens to a script of the i-th process.
func (g *queues) meets(i int, s world.Sending) redistest.Fault {
	g.mu.Lock()
	now := g.w.Now()
	deaf, fault, gust, lag := i == 0 && now < g.deaf, g.fault, 8, time.Duration(0)
	if now < g.storm && g.dice.IntN(4) == 0 {
		gust = g.dice.IntN(8)
	}
	if g.lag > 0 {
		lag = time.Duration(g.dice.Int64N(int64(g.lag) + 1))
	}
	late := time.Duration(g.dice.Int64N(int64(latest)))
	g.mu.Unlock()
	if i == 0 && fault != nil {
		if f := fault(s); f != redistest.Fault(redistest.Pass) {
			return f
		}
	}
	switch {
	case deaf:
		return redistest.ReplyError("ERR max number of clients reached")
	case gust < 8:
		return g.gust(gust, late)
	case lag > 0:
		return redistest.DelayReply(lag)
	}
	return redistest.Pass
}

// gust is one of the faults of a storm.
func (g *queues) gust(which int, late time.Duration) redistest.Fault {
	faults := []redistest.Fault{
		redistest.Silence, redistest.CloseAfterExec, redistest.CloseAfterExec, redistest.DropBefore, redistest.HalfReply, redistest.Duplicate,
		redistest.ReplyError("LOADING Redis is loading the dataset in memory"), redistest.Delay(late),
	}
	switch which {
	case 0:
		g.upsets(silent)
	case 7:
		g.upsets(late)
	default:
		g.upsets(0)
	}
	return faults[which]
}

// storms lets scripts of both processes meet faults for some time.
func (g *queues) storms(rt *rapid.T) {
	lasts := time.Duration(rapid.SampledFrom([]int{20, 200, 2000}).Draw(rt, "storm for ms")) * time.Millisecond
	g.mu.Lock()
	g.storm = g.w.Now() + lasts
	g.mu.Unlock()
	g.note("a storm for %v", lasts)
}

func (g *queues) hangUp(*rapid.T) {
	g.note("p hangs up")
	g.upsets(0)
	g.all[0].HangUp()
	synctest.Wait()
}

// deafen makes the server refuse the first process, for less time than a clean-up goes on.
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
	g.upsets(lasts)
}

// mute keeps the first process from reading messages, or lets it read them again.
func (g *queues) mute(*rapid.T) {
	p := g.all[0]
	if p.Muted() {
		p.Unmute()
	} else {
		p.Mute()
	}
	g.note("p is mute: %v", p.Muted())
	g.upsets(0)
	synctest.Wait()
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
	g.releases = slices.DeleteFunc(g.releases, func(c *queuer) bool {
		over := c.over()
		if over {
			g.note("released: %v", c.err)
			g.free = max(g.free, c.at)
			if c.err != nil {
				g.free += g.lease + polls // what is left of it runs out
			}
		}
		return over
	})
	var granted []*queuer
	g.waits = slices.DeleteFunc(g.waits, func(c *queuer) bool {
		over := c.over()
		switch {
		case over && c.err == nil:
			granted = append(granted, c)
		case over:
			g.note("%s, begun at %v: %v", c.what, c.began, c.err)
			if !may(c.err) {
				g.fatal(rt, "which it must not be")
			}
			if g.lag > 0 {
				g.free = max(g.free, c.at+givenUp) // its request may have been on its way
			}
		}
		return over
	})
	slices.SortFunc(granted, func(a, b *queuer) int { return int(a.at - b.at) })
	for _, c := range granted {
		g.enters(rt, c)
	}
	g.held = slices.DeleteFunc(g.held, func(c *queuer) bool {
		lost := c.lease.Err() != nil
		if lost {
			g.note("%d is lost", c.lease.Token())
			g.free = max(g.free, g.w.Now()+g.lease) // as late as that it may have been renewed
			g.giveBack(c)
		}
		return lost
	})
	for i, c := range g.held {
		for _, other := range g.held[:i] {
			if !c.beside(other) {
				g.fatal(rt, "two hold it: %v and %v", other.lease.Owner(), c.lease.Owner())
			}
		}
	}
	g.prompt(rt)
	if len(g.waits)+len(g.held)+len(g.releases) > 0 {
		g.idle = g.w.Now()
	} else if g.w.Now() > g.clean() {
		g.wantNoQueue(rt)
	}
}

// enters takes a grant in.
func (g *queues) enters(rt *rapid.T, c *queuer) {
	token := c.lease.Token()
	g.note("%s, begun at %v: granted at %v with %d to %v", c.what, c.began, c.at, token, c.lease.Owner())
	switch {
	case c.outer != nil && c.reads == c.outer.reads && (c.lease.Owner() != c.outer.lease.Owner() || token != c.outer.lease.Token()):
		g.fatal(rt, "which is not the hold of %v with %d", c.outer.lease.Owner(), c.outer.lease.Token())
	case c.outer == nil && !c.reads && token <= g.token:
		g.fatal(rt, "after %d", g.token)
	}
	g.token = max(g.token, token)
	g.held = append(g.held, c)
}

// clean returns when the clean-up after all calls must be over.
func (g *queues) clean() time.Duration { return max(g.idle+givenUp, g.calm()-afterStorm+unqueued) }

// prompt fails the program if a call has waited beside a free lock while nothing was wrong.
func (g *queues) prompt(rt *rapid.T) {
	calm := g.calm()
	if len(g.held) > 0 || len(g.releases) > 0 || g.all[0].Muted() {
		return
	}
	for _, c := range g.waits {
		if since := max(g.free, c.began, calm); g.w.Now()-since > promptly+lagsOfAHandOver*g.lag {
			g.fatal(rt, "%s has waited beside a free lock since %v", c.what, since)
		}
	}
}

// over ends the program: the network works again, all calls end, and nothing is left in Redis.
func (g *queues) over(rt *rapid.T) {
	g.mu.Lock()
	g.deaf, g.storm, g.lag, g.fault = 0, 0, 0, nil
	g.mu.Unlock()
	g.all[0].Unmute()
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
