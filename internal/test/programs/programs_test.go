// Random programs check that every lease keeps its promises. In a program one process uses locks of
// several kinds in any order, its wire loses, delays and repeats what it likes, Redis forgets
// locks, and Redis's clock is set:
// go test -run TestRandomPrograms -rapid.checks=10000 ./internal/test/programs

package programs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/lockertest"
	"github.com/holdfast-go/holdfast/internal/test/rapidtest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

const (
	// afterEffect is how long a fault may be felt after it is over. If a reply never comes, the
	// client gives it up after its read timeout of 3 s, together with everything that it sent
	// meanwhile on the same connection.
	afterEffect = 8 * time.Second
	// programMargin is longer than the margin of any lease here, which is the time by which the
	// lease ends earlier in this process than in Redis.
	programMargin = 500 * time.Millisecond
)

// programLock is a lock that programs use. If its kind is shared, other shared holds may stand beside its hold.
type programLock struct {
	name string
	lockertest.Kind
}

// newProgramLocks returns some locks that no program has used.
func newProgramLocks(n int) []programLock {
	return []programLock{
		{fmt.Sprint("mutex ", n), kindOf("mutex")}, {fmt.Sprint("another mutex ", n), kindOf("mutex")},
		{fmt.Sprint("fair ", n), kindOf("fair")},
		{fmt.Sprint("rw ", n), kindOf("write")}, {fmt.Sprint("rw ", n), kindOf("read")},
	}
}

// program is one random program under way.
type program struct {
	story
	locks []programLock
	p     *world.Process
	rival *world.Process // behind a wire without faults

	held    []*promised
	ended   []*holdfast.Lease // released, or lost
	pending []*programCall
	cohort  holdfast.LeaseOption // how long the process passes a lock on within itself
	short   term
	long    term
	margin  time.Duration
	spoilt  map[string]time.Duration // by name: when Redis lost the lock
	looked  time.Duration            // the last check
	met     atomic.Bool              // a fault has come
	tokens  map[string]int64
	since   map[holdfast.Owner]time.Duration // when the program asked for the first lease of a hold
}

// term is how long something is held, and whether it is renewed.
type term struct {
	length  time.Duration
	renewed bool
}

// promised is a lease and what the lease promises.
type promised struct {
	*holdfast.Lease
	of   *world.Process
	lock int
	how  term
	sure time.Duration // the lease lasts until then, whatever the wire does
}

// programCall is a call, and what comes of it.
type programCall struct {
	call
	token int64     // the greatest token that the lock had given when the call began
	lease *promised // the lease that the call was granted
	then  func()
}

func TestRandomPrograms(t *testing.T) {
	programs := 0
	rapidtest.Rounds(t, 10, func(check func(testing.TB, func(*rapid.T))) {
		world.Play(t, func(t *testing.T, w *world.World) { // a world keeps all processes that it has had
			check(t, func(rt *rapid.T) {
				programs++
				g := &program{
					story: story{w: w, born: w.Now()}, locks: newProgramLocks(programs), p: w.Process(), rival: w.Process(),
					spoilt: map[string]time.Duration{}, tokens: map[string]int64{}, since: map[holdfast.Owner]time.Duration{},
				}
				g.drawShape(rt)
				defer g.over(rt)
				rt.Repeat(g.actions(rt))
			})
		})
	})
}

// drawShape draws the shape of the whole program. With fewer things to do a program goes deeper
// into each.
func (g *program) drawShape(rt *rapid.T) {
	g.locks = g.locks[:rapid.IntRange(1, len(g.locks)).Draw(rt, "locks")]
	if rapid.Bool().Draw(rt, "the last first") {
		slices.Reverse(g.locks)
	}
	g.cohort = holdfast.Cohort(16, 10*time.Millisecond)
	if rapid.Bool().Draw(rt, "long cohort") {
		g.cohort = holdfast.Cohort(1000, time.Hour)
	}
	g.short, g.long = drawTerm(rt, "short"), drawTerm(rt, "long")
	if rapid.Bool().Draw(rt, "one length") { // a hold is hardly passed on after a lease of another length
		g.long = term{g.short.length, !g.short.renewed}
	}
}

// drawTerm draws the length of a lease, and whether the lease is renewed.
func drawTerm(rt *rapid.T, label string) term {
	return term{
		rapid.SampledFrom([]time.Duration{time.Second, 3 * time.Second, 30 * time.Second}).Draw(rt, label),
		rapid.Bool().Draw(rt, label+", renewed"),
	}
}

// actions draws the program's actions: a few that every program has, and some of the others.
func (g *program) actions(rt *rapid.T) actions {
	chosen := some(rt, actions{
		"extend": g.extend, "cancel": g.cancel, "fault": g.fault, "lose": g.lose,
		"rival": g.rivals, "step": g.step, "rest": g.rest, "nested": g.nested, "exchange": g.exchange,
	})
	if rapid.IntRange(0, 3).Draw(rt, "holds change hands") == 3 { // the others go deeper without
		chosen["force"], chosen["pass on"] = g.force, g.passOn
	}
	g.margin = programMargin
	if chosen["fault"] != nil {
		g.margin += latest
	}
	chosen["lock"], chosen["line up"], chosen["release"], chosen["time"], chosen[""] = g.lock, g.lineUp, g.release, g.time, g.check
	return chosen
}

// way draws how a lock is held: in one of the program's two ways.
func (g *program) way(rt *rapid.T) term {
	if rapid.Bool().Draw(rt, "the long way") {
		return g.long
	}
	return g.short
}

// option returns the option that makes a lease last so.
func (how term) option() holdfast.LeaseOption {
	if how.renewed {
		return holdfast.Renewed(how.length)
	}
	return holdfast.Fixed(how.length)
}

// drawLock draws a lock, mostly the first, so that there are waiters.
func (g *program) drawLock(rt *rapid.T) int {
	return max(0, rapid.IntRange(-4, len(g.locks)-1).Draw(rt, "lock"))
}

// do begins a call.
func (g *program) do(what string, parent context.Context, limit time.Duration, f func(ctx context.Context, c *programCall) error) *programCall {
	c := new(programCall)
	g.pending = append(g.pending, c)
	g.begin(&c.call, what, parent, limit, func(ctx context.Context) error { return f(ctx, c) })
	return c
}

func (g *program) lock(rt *rapid.T) {
	g.acquire(rt, g.p, g.drawLock(rt), g.way(rt), context.Background())
}

// lineUp has callers wait for the first lock, all to hold it in the same way, so that it may be passed on.
func (g *program) lineUp(rt *rapid.T) {
	for range rapid.IntRange(1, 4).Draw(rt, "callers") {
		g.acquire(rt, g.p, 0, g.short, context.Background())
	}
}

func (g *program) nested(rt *rapid.T) {
	outer := g.any(rt)
	g.acquire(rt, outer.of, outer.lock, g.way(rt), outer.Context(context.Background()))
}

// exchange takes a lease of the other way on a hold, and gives the first lease back. In half of the cases it gives the other
// back after a while too, and leaves the lock alone for another while.
func (g *program) exchange(rt *rapid.T) {
	outer, how := g.any(rt), g.short
	if outer.how == how {
		how = g.long
	}
	c := g.acquire(rt, outer.of, outer.lock, how, outer.Context(context.Background()))
	g.check(rt)
	if outer.Err() != nil {
		return
	}
	g.giveBack(outer)
	g.pass(rt, rapid.IntRange(0, 12).Draw(rt, "twelfths"), how.length/12)
	if slices.Contains(g.held, c.lease) && rapid.Bool().Draw(rt, "no longer") {
		g.giveBack(c.lease)
		g.pass(rt, rapid.IntRange(0, 12).Draw(rt, "sixths"), how.length/6)
	}
}

func (g *program) acquire(rt *rapid.T, p *world.Process, lock int, how term, parent context.Context) *programCall {
	limit := time.Duration(rapid.SampledFrom([]int{10, 1000, 20_000, 20_000}).Draw(rt, "limit")) * time.Millisecond
	name := g.locks[lock].name
	locker := g.locks[lock].Locker(p.Client, name, how.option(), g.cohort)
	floor := g.tokens[name]
	return g.do(fmt.Sprintf("lock %s %v within %v", name, how, limit), parent, limit, func(ctx context.Context, c *programCall) error {
		c.token = floor
		l, err := locker.Lock(ctx)
		if err != nil {
			return err
		}
		c.lease = g.promise(l, p, lock, how, c.began)
		return nil
	})
}

// promise says what a lease promises that was asked for at that time.
func (g *program) promise(l *holdfast.Lease, p *world.Process, lock int, how term, began time.Duration) *promised {
	promise := &promised{Lease: l, of: p, lock: lock, how: how}
	if !how.renewed {
		promise.sure = began + how.length - g.margin
	}
	return promise
}

// passOn moves a hold with one lease to the other process.
func (g *program) passOn(rt *rapid.T) {
	l := g.any(rt)
	to := map[*world.Process]*world.Process{g.p: g.rival, g.rival: g.p}[l.of]
	how := g.way(rt)
	lock := g.locks[l.lock]
	heir, can := lock.Locker(to.Client, lock.name, how.option()).(interface {
		Attach(context.Context, holdfast.Owner) (*holdfast.Lease, error)
	})
	if !can || len(g.pending) > 0 || slices.ContainsFunc(g.held, func(h *promised) bool { return h != l && h.Owner() == l.Owner() }) {
		rt.Skip()
	}
	g.drop(l)
	g.do("pass on "+lock.name, context.Background(), time.Minute, func(ctx context.Context, c *programCall) error {
		owner, err := l.Detach(ctx)
		if err != nil {
			return err
		}
		asked := g.w.Now()
		attached, err := heir.Attach(ctx, owner)
		if err != nil {
			return err
		}
		if c.token = l.Token(); attached.Token() < c.token { // it may be the last that was reserved with the hold
			return fmt.Errorf("token %d is %d after it was passed on", c.token, attached.Token())
		}
		c.lease = g.promise(attached, to, l.lock, how, asked)
		return nil
	})
}

// force takes a lock from its holder, through the holder's own Client.
func (g *program) force(rt *rapid.T) {
	l := g.any(rt)
	lock := g.locks[l.lock]
	forced, can := lock.Locker(l.of.Client, lock.name).(interface {
		ForceRelease(context.Context, ...holdfast.Owner) (bool, error)
	})
	if !can {
		rt.Skip()
	}
	known := !g.spoiltSince(l) // Redis may have forgotten it, and given the lock to another
	g.spoilt[lock.name] = g.w.Now()
	did, err := forced.ForceRelease(context.Background())
	g.note("force %s: %v, %v", lock.name, did, err)
	if did && known && l.Err() == nil {
		g.fatal(rt, "the lease outlives it")
	}
	g.spoilt[lock.name] = g.w.Now()
}

// drop removes a lease from those that are held.
func (g *program) drop(l *promised) {
	g.held = slices.DeleteFunc(g.held, func(other *promised) bool { return other == l })
}

// any draws a lease that is held.
func (g *program) any(rt *rapid.T) *promised {
	if len(g.held) == 0 {
		rt.Skip()
	}
	return rapid.SampledFrom(g.held).Draw(rt, "lease held")
}

func (g *program) release(rt *rapid.T) { g.giveBack(g.any(rt)) }

func (g *program) giveBack(l *promised) {
	g.drop(l)
	c := g.do("release", context.Background(), time.Minute, func(ctx context.Context, _ *programCall) error {
		err := l.Release(ctx)
		if errors.Is(err, holdfast.ErrReleased) {
			return errors.New("a first release says that it is not the first")
		}
		return err
	})
	c.then = func() { g.ended = append(g.ended, l.Lease) }
}

func (g *program) extend(rt *rapid.T) {
	l := g.any(rt)
	d := rapid.SampledFrom([]time.Duration{2 * time.Second, 10 * time.Second, 40 * time.Second}).Draw(rt, "by")
	c := g.do("extend", context.Background(), 10*time.Second, func(ctx context.Context, _ *programCall) error {
		return l.Extend(ctx, d)
	})
	c.then = func() { l.sure = max(l.sure, c.began+d-g.margin) }
}

func (g *program) cancel(rt *rapid.T) {
	if len(g.pending) == 0 {
		rt.Skip()
	}
	rapid.SampledFrom(g.pending).Draw(rt, "call").cancel()
	synctest.Wait()
}

// fault lets one of the next scripts, or one of the next renewals, meet a fault.
func (g *program) fault(rt *rapid.T) {
	late := rapid.SampledFrom([]time.Duration{100 * time.Millisecond, 900 * time.Millisecond, latest}).Draw(rt, "late")
	fault := []redistest.Fault{
		redistest.CloseAfterExec, redistest.Silence, redistest.DropBefore, redistest.HalfReply, redistest.Duplicate,
		redistest.Delay(late), redistest.DelayReply(late), redistest.DelayReply(late), redistest.DelayReply(late),
	}[rapid.IntRange(0, 8).Draw(rt, "fault")]
	after := rapid.SampledFrom([]int32{1, 1, 2, 4}).Draw(rt, "the how manieth")
	var seen atomic.Int32
	renewals := rapid.Bool().Draw(rt, "renewals")
	g.p.Each(func(s world.Sending) redistest.Fault {
		if renewals && !slices.Contains([]string{world.RenewRun, world.ManyRun, world.ReadRenewRun}, s.Script) {
			return redistest.Pass
		}
		if seen.Add(1) != after {
			return redistest.Pass
		}
		g.note("%s meets %v, late %v", s.Script, fault, late)
		g.feel(late)
		g.met.Store(true)
		return fault
	})
}

// lose lets Redis forget a lock.
func (g *program) lose(rt *rapid.T) {
	name := rapid.SampledFrom(g.locks).Draw(rt, "lost").name
	g.note("redis loses %s", name)
	g.w.Mini.Del(name)
	g.spoilt[name] = g.w.Now()
}

// rivals lets another process try to take a lock, and keep it for a moment.
func (g *program) rivals(rt *rapid.T) {
	i := g.drawLock(rt)
	lock := g.locks[i]
	l, err := lock.Locker(g.rival.Client, lock.name, holdfast.Fixed(2*time.Second)).TryLock(context.Background())
	if err != nil {
		return
	}
	for _, h := range g.held {
		beside := g.locks[h.lock]
		if beside.name == lock.name && !(beside.Shared && lock.Shared) && h.Err() == nil && !g.spoiltSince(h) {
			g.fatal(rt, "at %v: another process has %s beside %v", g.w.Now(), lock.name, h.Owner())
		}
	}
	g.token(rt, lock.name, l, g.tokens[lock.name])
	time.Sleep(50 * time.Millisecond)
	if err := l.Release(context.Background()); err != nil {
		g.fatal(rt, "the rival's release: %v", err)
	}
}

// token fails the program if a grant's token is less than before. before is the greatest token that
// the lock had given when the program asked for the grant.
func (g *program) token(rt *rapid.T, name string, l *holdfast.Lease, before int64) {
	if l.Token() == 0 {
		return // a reader has no token
	}
	if l.Token() < before {
		g.fatal(rt, "%s: token %d after %d", name, l.Token(), before)
	}
	g.note("%s is granted to %v with %d, after %d", name, l.Owner(), l.Token(), before)
	g.tokens[name] = max(g.tokens[name], l.Token())
}

// step sets the server's clock ahead for a moment, so that Redis ends leases too early: these
// leases are lost for a reason. step never sets the clock behind the true time. miniredis keeps
// times to live, where Redis keeps instants, so a key that got its end meanwhile would stand for an
// hour.
func (g *program) step(rt *rapid.T) {
	by := rapid.SampledFrom([]time.Duration{5 * time.Second, time.Hour}).Draw(rt, "step")
	g.note("the server's clock steps by %v", by)
	g.w.Stepped(by)
	time.Sleep(time.Duration(rapid.IntRange(1, 2000).Draw(rt, "for")) * time.Millisecond)
	g.note("and back")
	g.w.Mini.SetTime(time.Time{})
	g.w.Mini.ClockTTL(true) // else miniredis takes the time since the year 1 to have passed
	g.feel(0)
	for _, lock := range g.locks {
		g.spoilt[lock.name] = g.w.Now()
	}
}

// time passes in short slices, or in long ones: else a lease of 30 s would hardly be renewed while other calls run.
func (g *program) time(rt *rapid.T) {
	slice := rapid.SampledFrom([]time.Duration{50 * time.Millisecond, 500 * time.Millisecond}).Draw(rt, "slice")
	g.pass(rt, rapid.IntRange(1, 30).Draw(rt, "slices"), slice)
}

// rest leaves the wire without faults for a long time.
func (g *program) rest(rt *rapid.T) {
	g.p.Each(nil)
	g.pass(rt, rapid.IntRange(1, 6).Draw(rt, "rest"), 5*time.Second)
}

// pass lets time pass in slices, and checks after each. It stops when a fault has come, so that other calls meet what the
// fault makes late.
func (g *program) pass(rt *rapid.T, slices int, slice time.Duration) {
	g.met.Store(false)
	for range slices {
		if g.met.Load() {
			return
		}
		time.Sleep(slice)
		g.check(rt)
	}
}

// check collects the results of calls, and compares what each lease promises with what the lease
// says.
func (g *program) check(rt *rapid.T) {
	synctest.Wait()
	g.pending = slices.DeleteFunc(g.pending, func(c *programCall) bool {
		over := c.over()
		if over {
			g.settle(rt, c)
		}
		return over
	})
	g.held = slices.DeleteFunc(g.held, func(h *promised) bool {
		if h.Err() != nil {
			g.note("%s of %v has ended: %v", g.locks[h.lock].name, h.Owner(), h.Err())
			g.explain(rt, h)
			g.ended = append(g.ended, h.Lease)
			return true
		}
		g.outlasts(rt, h)
		return false
	})
	g.looked = g.w.Now()
}

// settle collects the result of a call.
func (g *program) settle(rt *rapid.T, c *programCall) {
	g.note("%s, begun at %v: %v", c.what, c.began-g.born, c.err)
	switch {
	case c.err == nil && c.lease != nil:
		g.held = append(g.held, c.lease)
		if _, known := g.since[c.lease.Owner()]; !known {
			g.since[c.lease.Owner()] = c.began
		}
		if g.spoiltSince(c.lease) {
			c.token = 0 // passed on by a holder that has not been told yet that Redis forgot it
		}
		g.token(rt, g.locks[c.lease.lock].name, c.lease.Lease, c.token)
	case c.err == nil && c.then != nil:
		c.then()
	case c.err != nil && !may(c.err):
		g.fatal(rt, "which it must not be")
	}
}

// spoiltSince reports whether Redis has lost the lock since the program asked for the hold.
func (g *program) spoiltSince(h *promised) bool {
	at, ok := g.spoilt[g.locks[h.lock].name]
	return ok && at >= g.since[h.Owner()]
}

// explain fails the program if a lease has ended before the time that it promised.
func (g *program) explain(rt *rapid.T, h *promised) {
	name := g.locks[h.lock].name
	switch {
	case g.spoiltSince(h):
	case g.looked < h.sure && g.w.Now() < h.sure:
		g.fatal(rt, "at %v: %s was to last until %v: %v", g.w.Now(), name, h.sure, h.Err())
	case h.how.renewed && g.looked > g.calm()+afterEffect+h.how.length:
		g.fatal(rt, "at %v: %s is renewed, and nothing has been wrong since %v: %v", g.w.Now(), name, g.calm()+afterEffect, h.Err())
	}
}

// outlasts fails the program if a lease lasts for longer than Redis keeps the lock, or for less
// than it promised.
func (g *program) outlasts(rt *rapid.T, h *promised) {
	name := g.locks[h.lock].name
	if g.spoiltSince(h) {
		return
	}
	if left := g.w.Now() + time.Until(h.Deadline()); left < h.sure {
		g.fatal(rt, "at %v: %s was to last until %v, and lasts until %v", g.w.Now(), name, h.sure, left)
	}
	if left, ttl := time.Until(h.Deadline()), g.w.PTTL(name); ttl >= 0 && left > ttl || ttl == -2 {
		g.fatal(rt, "at %v: %s is believed in for %v, and Redis has it for %v", g.w.Now(), name, left, ttl)
	}
}

// over ends the program: all calls end, all leases are released, and nothing is left in Redis.
func (g *program) over(rt *rapid.T) {
	g.p.Each(nil)
	for _, c := range g.pending {
		c.cancel()
	}
	for _, c := range g.pending {
		<-c.done
	}
	g.pass(rt, 4, 10*time.Second) // collects the results, and what is held stays held
	for _, h := range g.held {
		if h.Release(context.Background()) == nil {
			g.ended = append(g.ended, h.Lease)
		}
	}
	for _, l := range g.ended {
		if l.Release(context.Background()) == nil {
			g.fatal(rt, "%v is released once more", l.Owner())
		}
	}
	_ = g.p.Close()
	_ = g.rival.Close()
	time.Sleep(2 * time.Minute)
	for _, lock := range g.locks {
		if ttl := g.w.PTTL(lock.name); ttl != -2 {
			g.fatal(rt, "%s is left, for %v", lock.name, ttl)
		}
		g.w.Mini.Del(world.AllTokens + "{" + lock.name + "}") // miniredis looks at all keys before each command
	}
}
