// Each operation of each kind meets each mishap of a network, and all counts, verdicts and tokens stay
// right. The operations are in lives_test.go and lives_work_test.go.

package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/lockertest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// mishap is what happens to one script, or to its reply, on the way.
type mishap struct {
	name  string
	fault func(u *unlucky) redistest.Fault
}

// lateness is how late a request or a reply comes that is late.
const lateness = 2 * time.Second

// The last three cost a real server real time.
var mishaps = []mishap{
	{"request lost", always(redistest.DropBefore)},
	{"reply lost", always(redistest.CloseAfterExec)},
	{"half a reply", always(redistest.HalfReply)},
	{"sent twice", always(redistest.Duplicate)},
	{"scripts forgotten", func(u *unlucky) redistest.Fault {
		u.direct.ScriptFlush(context.Background())
		return redistest.Pass
	}},
	{"no reply", always(redistest.Silence)},
	{"request late", always(redistest.Delay(lateness))},
	{"reply late", always(redistest.DelayReply(lateness))},
}

func always(f redistest.Fault) func(*unlucky) redistest.Fault {
	return func(*unlucky) redistest.Fault { return f }
}

// unlucky is a Client of which one script in each operation may meet a mishap.
type unlucky struct {
	*holdfast.Client
	onlooker *holdfast.Client // meets none
	direct   redis.UniversalClient

	t       *testing.T
	ctx     context.Context
	virtual bool          // time is virtual
	lease   time.Duration // of elections and barriers
	name    string        // of what the operations are about
	what    string        // the operation
	draw    func() (m mishap, nth int)
	scripts map[string]string // their names, by digest and by source

	mu     sync.Mutex
	mishap mishap
	nth    int // which script to come meets it: 1 is the next one; 0: none
	met    int
	looks  int // how often parties of a barrier have asked how it stands
}

func newUnlucky(t *testing.T, proxy *redistest.FaultProxy, direct *redis.Client, options ...func(*redis.Options)) *unlucky {
	u := &unlucky{direct: direct, t: t, ctx: t.Context(), lease: 30 * time.Second, scripts: world.ScriptNames(t)}
	proxy.OnCommand(u.meet)
	u.Client = clienttest.OpenClient(t, proxy.Client(t, options...))
	u.onlooker = clienttest.OpenClient(t, direct)
	return u
}

// isScript says whether a command runs a script.
func isScript(c redistest.Command) bool { return c.Name == "EVALSHA" || c.Name == "EVAL" }

// meet is the proxy's rule.
func (u *unlucky) meet(c redistest.Command) redistest.Fault {
	if !isScript(c) {
		return redistest.Pass
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	script := u.scripts[c.Args[0]]
	if script == world.BarrierLookRun {
		u.looks++
	}
	if u.nth == 0 {
		return redistest.Pass
	}
	if u.nth--; u.nth > 0 {
		return redistest.Pass
	}
	u.met++
	return u.mishap.fault(u)
}

// do makes a call, of which a script may meet a mishap. The mishap may come until the next call, in what the
// Client does in the background. No release is sent twice by the network: the second reply cannot be told from
// that of a loss, and a Client that sends it again knows better.
func (u *unlucky) do(what string, call func() error) {
	u.t.Helper()
	m, nth := u.draw()
	if m.name == "sent twice" && strings.HasPrefix(what, "Release") {
		nth = 0
	}
	u.mu.Lock()
	u.what, u.mishap, u.nth = what, m, nth
	before := u.met
	u.mu.Unlock()
	err := call()
	u.mu.Lock()
	met := u.met > before
	u.mu.Unlock()
	if met && strings.HasSuffix(m.name, "late") {
		time.Sleep(lateness + time.Second)
	}
	u.must(err)
}

// calm lets no script meet a mishap until the next call.
func (u *unlucky) calm() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.nth = 0
}

// must fails the test on an error.
func (u *unlucky) must(err error) {
	u.t.Helper()
	if err != nil {
		u.t.Fatalf("%s, %s (%s): %v", u.name, u.what, u.mishap.name, err)
	}
}

// want fails the test unless ok.
func (u *unlucky) want(ok bool, format string, args ...any) {
	u.t.Helper()
	if !ok {
		u.must(fmt.Errorf(format, args...))
	}
}

// live plays a life, and returns how many scripts met a mishap.
func (u *unlucky) live(name string, life func(*unlucky), draw func() (mishap, int)) int {
	before := u.met
	u.name, u.draw = name, draw
	life(u)
	u.calm()
	u.must(u.direct.Del(u.ctx, name).Err()) // permits that are set stay
	return u.met - before
}

// lives has the life of each kind: its operations, one after the other.
func lives() map[string]func(*unlucky) {
	all := map[string]func(*unlucky){
		"downgrade": (*unlucky).downgradeLife,
		"semaphore": (*unlucky).semaphoreLife,
		"permits":   (*unlucky).permitLife,
		"latch":     (*unlucky).latchLife,
		"leader":    (*unlucky).leaderLife,
		"once":      (*unlucky).onceLife,
		"barrier":   (*unlucky).barrierLife,
		"limiter":   (*unlucky).limiterLife,
	}
	for _, kind := range lockertest.Kinds {
		if kind.Name != "stripe" { // it is a Mutex of another name
			all[kind.Name] = func(u *unlucky) { u.lockLife(kind) }
		}
	}
	return all
}

// staying are the prefixes of the keys that stay in Redis.
var staying = append([]string{"holdfast_lock_token:", "holdfast_latch:", "holdfast_limit:", "holdfast_barrier:", "holdfast_barrier_places:"},
	lockertest.Staying...)

// eachLife runs f for the life of each kind, in virtual time.
func eachLife(t *testing.T, f func(u *unlucky, life func(*unlucky))) {
	for kind, life := range lives() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(u *unlucky) { f(u, life) })
		})
	}
}

// inBubble plays in virtual time on an embedded server, on which nothing is left in the end.
func inBubble(t *testing.T, play func(u *unlucky)) {
	redistest.Bubble(t, func(t *testing.T) {
		server := redistest.Mini(t)
		u := newUnlucky(t, server.Proxy(), server.Client(), func(o *redis.Options) { o.ReadTimeout = 100 * time.Millisecond })
		u.virtual, u.lease = true, 6*time.Second // soon renewed
		play(u)
		_, _ = u.Client.Close(), u.onlooker.Close()
		redistest.LeftBehind(t, u.direct, staying...)
	})
}

// In each operation of each kind the first script meets a mishap; in the next life the second one, and so on.
// An operation that sends more than five sends the same one again and again. Short runs end with the second.
func TestEachScriptMeetsEachMishap(t *testing.T) {
	most := max(2, redistest.CountOfWork(t, 5))
	if redistest.RaceDetector {
		most = 1
	}
	for _, m := range mishaps {
		t.Run(m.name, func(t *testing.T) {
			eachLife(t, func(u *unlucky, life func(*unlucky)) {
				for nth, met := 1, 1; met > 0 && nth <= most; nth++ {
					met = u.live(fmt.Sprint("script", nth), life, func() (mishap, int) { return m, nth })
				}
			})
		})
	}
}

// The mishaps and the scripts that meet them are drawn.
func TestMishapsThatAreDrawn(t *testing.T) {
	rounds, seed := redistest.CountOfWork(t, 60), uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	eachLife(t, func(u *unlucky, life func(*unlucky)) {
		u.live("without mishaps: "+u.t.Name(), life, func() (mishap, int) { return mishap{}, 0 })
		dice, met := rand.New(rand.NewPCG(seed, 0)), 0
		for round := range rounds {
			met += u.live(fmt.Sprint("life", round, " of ", u.t.Name()), life, func() (mishap, int) {
				return mishaps[dice.IntN(len(mishaps))], 1 + dice.IntN(3)
			})
		}
		clienttest.Figure(u.t, "%d mishaps in %d lives: all counts, verdicts and tokens right", met, rounds)
	})
}
