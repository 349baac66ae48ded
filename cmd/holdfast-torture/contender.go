// A contender: a process with one Client, and lanes that use it.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

const (
	// steady is how many of the contenders are never killed. Only these use objects that a dead
	// process would keep from the others for good.
	steady = 2
	// lanesOfAKind is how many lanes each contender has for each kind, times the run's width.
	lanesOfAKind = 2

	childName = "contender"
	envOrders = "HOLDFAST_TORTURE"
)

// The commands to a contender while it runs, each followed by its argument. Any other line
// makes it finish.
const (
	epochs      = "epoch "            // a number
	unresolving = "resolve no names " // a duration
)

// orders is what a contender needs to know.
type orders struct {
	Name      string // steady ones are called 0 and 1
	Steady    bool
	Leads     bool // sets the latches
	Processes int
	Seed      uint64
	Kinds     []string
	Lease     time.Duration
	Width     int
	Replicas  int
	Referee   string
	Epoch     int64

	Topology string
	Ground   ground
	Addrs    []string          // addresses of servers or, with Sentinel, of sentinels
	Routes   map[string]string // from a server to the proxy in front of it
}

// runs are the kinds whose lanes do not take turns at holding one object.
var runs = map[string]func(*lane, context.Context) error{"once": (*lane).runOnce, "barrier": (*lane).runBarrier, "shards": (*lane).runShards}

// contender is the child process: the program starts copies of itself that run it.
func contender() redistest.ChildFunc {
	return redistest.Child(childName, func(c *redistest.ChildContext) {
		leftAlone := goleak.IgnoreCurrent()
		logging.Disable() // go-redis would log what the run provokes: that Redis is out of reach
		var o orders
		if err := json.Unmarshal([]byte(os.Getenv(envOrders)), &o); err != nil {
			c.Say("error %v", err)
			return
		}
		if err := o.obey(c); err != nil {
			c.Say("error %v", err)
		}
		if err := leaked(append(o.Ground.leaves(), leftAlone)); err != nil {
			c.Say("error goroutines are left: %v", err)
		}
		c.Say("bye")
	})
}

// leaked waits a while for goroutines to end.
func leaked(leftAlone []goleak.Option) error {
	var err error
	for range 10 {
		if err = goleak.Find(leftAlone...); err == nil {
			return nil
		}
	}
	return err
}

// obey contends until the referee's process tells it to stop, and leaves nothing behind.
func (o orders) obey(c *redistest.ChildContext) error {
	names := &resolver{}
	rdbs, err := o.connect(names)
	if err != nil {
		return err
	}
	var clients []*holdfast.Client
	for _, rdb := range rdbs {
		clients = append(clients, holdfast.New(rdb, holdfast.WithReplicas(o.Replicas)))
	}
	ctx, stop := context.WithCancel(c)
	var epoch atomic.Int64
	epoch.Store(o.Epoch)
	errs := make(chan error, 100)
	var lanes sync.WaitGroup
	begin := func(kind, role string, run func(*lane, context.Context) error) {
		l, err := o.lane(kind, role, clients, &epoch)
		if err != nil {
			errs <- err
			return
		}
		lanes.Go(func() {
			defer l.conn.Close()
			if err := run(l, ctx); err != nil && c.Err() == nil {
				errs <- err
			}
		})
	}
	for _, kind := range o.Kinds {
		if !rules[kind].owned && !o.Steady {
			continue
		}
		if kind == "latch" {
			for number := range latchLanes / steady {
				leads := o.Leads && number == 0
				begin(kind, fmt.Sprint(number), func(l *lane, ctx context.Context) error { return l.runLatches(ctx, leads) })
			}
			continue
		}
		if run := runs[kind]; run != nil {
			for number := range lanesOfAKind * o.Width {
				begin(kind, fmt.Sprint(number), run)
			}
			continue
		}
		for number := range lanesOfAKind * o.Width {
			begin(kind, fmt.Sprint(number), (*lane).run)
		}
		if kind == "leader" {
			begin(kind, "deposer", (*lane).runDeposer)
		}
		if rules[kind].owned {
			begin(kind, "sitter", (*lane).runSitter)
			begin(kind, "poker", func(l *lane, ctx context.Context) error { return l.runPoker(ctx, o.Processes) })
		}
		if kind == crowdKind {
			begin(kind, "trier", (*lane).runTrier)
			for number := range crowdLanes + o.Ground.Crowd {
				begin(kind, fmt.Sprint("crowd", number), (*lane).runCrowd)
			}
		}
	}
	lanes.Go(func() { o.feelPulse(ctx) })
	listen(c, &epoch, names)
	stop()
	lanes.Wait()
	for _, client := range clients {
		client.Close()
	}
	for _, rdb := range rdbs {
		rdb.Close()
	}
	close(errs)
	return <-errs // nil if there is none
}

// listen carries out the commands, and returns when the contender must finish.
func listen(c *redistest.ChildContext, epoch *atomic.Int64, names *resolver) {
	for {
		line, _ := c.Next()
		switch {
		case strings.HasPrefix(line, epochs):
			n, _ := strconv.ParseInt(strings.TrimPrefix(line, epochs), 10, 64)
			epoch.Store(n)
		case strings.HasPrefix(line, unresolving):
			d, _ := time.ParseDuration(strings.TrimPrefix(line, unresolving))
			names.fail(d)
		default:
			return
		}
	}
}

// lane makes a lane, with a connection to the referee.
func (o orders) lane(kind, role string, clients []*holdfast.Client, epoch *atomic.Int64) (*lane, error) {
	conn, err := net.Dial("unix", o.Referee)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s.%s.%s", o.Name, kind, role)
	place, _, _ := strings.Cut(o.Name, "+")
	return &lane{
		line:  newLine(conn),
		place: place,
		name:  name,
		kind:  kind,
		names: objectsOfAKind * o.Width,
		ways:  ways{clients: clients, lease: o.Lease},
		rand:  newRand(o.Seed, name),
		epoch: epoch,
		ready: map[string]bool{},
	}, nil
}

// newRand returns a random sequence of its own for each purpose.
func newRand(seed uint64, purpose string) *rand.Rand {
	second := uint64(14695981039346656037) // FNV-1a
	for _, b := range []byte(purpose) {
		second = (second ^ uint64(b)) * 1099511628211
	}
	return rand.New(rand.NewPCG(seed, second))
}

// A tick that comes more than stallBound late is reported to the referee. So is a tick in which
// the Pulse shows that the process got no time on some processor: timers that were due there
// may be as late as if the process had been stopped.
const (
	tick       = 5 * time.Millisecond
	stallBound = 5 * time.Millisecond
)

// feelPulse reports to the referee when the process did not run.
func (o orders) feelPulse(ctx context.Context) {
	conn, err := net.Dial("unix", o.Referee)
	if err != nil {
		return
	}
	defer conn.Close()
	l := newLine(conn)
	pulse, end := redistest.StartPulse()
	defer end()
	for last := time.Now(); ctx.Err() == nil; {
		time.Sleep(tick)
		now := time.Now()
		if now.Sub(last) > tick+stallBound || pulse.Slack(last, now) > tick {
			_ = l.tell(note{Topic: stalled, Lane: o.Name + ".pulse", Call: stamp(last), At: stamp(now)})
		}
		last = now
	}
}
