// Callers leave the queue of a node without a cost for each other; a request that was withdrawn has no more to do with its
// call; a server that is given up takes no more; the clock estimate keeps its bound.

package server

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn/call"
	"github.com/holdfast-go/holdfast/internal/conn/fault"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Those that stay keep their places. Each removal of those that have left takes as long as the queue is, so there
// are few: one each time that half of the queue has left.
func TestCallersThatLeaveTheQueueDoNotWaitForEachOther(t *testing.T) {
	const callers = 10_000
	n := &New("", &redis.Options{}, nil, nil).callers
	var stay []*request
	for i := range callers {
		r := new(request)
		n.queue = append(n.queue, r)
		if i%1000 == 7 {
			stay = append(stay, r)
		}
	}
	removals := 0
	for _, r := range slices.Clone(n.queue) {
		if before := len(n.queue); !slices.Contains(stay, r) && r.withdraw() {
			if n.forget(); len(n.queue) < before {
				removals++
			}
		}
	}
	if removals > 15 || len(n.queue) > 2*len(stay)+1 {
		t.Errorf("%d removals for %d callers, and %d are left in the queue", removals, callers, len(n.queue))
	}
	if left := slices.DeleteFunc(n.queue, (*request).isWithdrawn); !slices.Equal(left, stay) {
		t.Errorf("%d wait, or in another order, want %d", len(left), len(stay))
	}
}

// A withdrawn request does not look at its call: a pooled call is emptied, and another caller may
// use it by then.
func TestARequestThatWasWithdrawnDoesNotLookAtItsCall(t *testing.T) {
	r := &request{call: new(call.Call)}
	if !r.withdraw() || r.withdraw() {
		t.Fatal("is not withdrawn once")
	}
	if r.claim(new(clock), time.Now(), call.Window) {
		t.Error("is sent")
	}
}

// A request is either sent, and its caller learns its not-after, or withdrawn, and the call belongs
// to the caller again at once. The race detector checks that the two never touch the call together.
func TestARequestIsSentOrWithdrawn(t *testing.T) {
	var smalls call.Smalls
	script := call.NewScript("s", "return {1, 0}", call.Timeless)
	for round := range 2000 {
		c := smalls.Get(script, "key", "beside")
		c.SetNumber(0, 7)
		r := new(requests).get()
		r.call = &c.Call
		var prepared, withdrawn bool
		send := func() {
			if prepared = r.claim(new(clock), time.Now(), call.Window); prepared {
				(&wire{node: new(Node)}).compose([]*request{r}, time.Now())
			}
		}
		leave := func() {
			if withdrawn = r.withdraw(); withdrawn {
				smalls.Put(&c.Call)
			}
		}
		var both sync.WaitGroup
		both.Go([]func(){send, leave}[round%2]) // either may be the faster
		[]func(){leave, send}[round%2]()
		both.Wait()
		if prepared == withdrawn || prepared && (r.state.Load() != sent || r.sent.IsZero()) {
			t.Fatalf("sent: %t, withdrawn: %t", prepared, withdrawn)
		}
	}
}

func TestANodeThatWasGivenUpSendsItsCallersOn(t *testing.T) {
	n := New("", &redis.Options{}, nil, nil)
	n.renewals.wires = []*wire{{node: n}}
	if !n.renewals.inUse() {
		t.Error("a connection for renewals would be forgotten, and never closed")
	}
	n.renewals.wires = nil
	if !n.Retire() {
		t.Fatal("was not given up, though nothing is on it")
	}
	r := &request{call: &call.Call{}}
	if w := n.callers.board(r); w != nil || fault.Judge(r.err) != fault.Anew {
		t.Errorf("%v, %v, want that the caller looks anew", w, r.err)
	}
	if _, err := n.takeRenewals(t.Context()); fault.Judge(err) != fault.Anew {
		t.Errorf("renewals: %v, want that their caller looks anew", err)
	}
}

func TestOnlyALoneCallerLooks(t *testing.T) {
	n := New("", new(redis.Options), nil, nil)
	c := &n.callers
	for range 2 {
		c.wires = append(c.wires, &wire{node: n})
	}
	c.free = append(c.free, c.wires...)
	first, second := c.board(&request{call: new(call.Call)}), c.board(&request{call: new(call.Call)})
	if !first.alone || second.alone {
		t.Errorf("the first caller looks: %t, want true; the second, beside it: %t, want false", first.alone, second.alone)
	}
}

// The estimate is never ahead of the server, even if answers take their time and overtake each
// other. So a not-after made from the estimate never lets a request run longer than was meant.
func TestClockIsNeverAheadOfTheServer(t *testing.T) {
	// TIME has no finer unit.
	const resolution = time.Microsecond
	redistest.Bubble(t, func(t *testing.T) {
		for seed := range uint64(200) {
			random := rand.New(rand.NewPCG(seed, 1))
			ahead := time.Duration(random.Int64N(int64(time.Hour))) - 30*time.Minute
			server := func() time.Time { return time.Now().Add(ahead) }
			sleep := func() { time.Sleep(time.Duration(random.Int64N(int64(200 * time.Millisecond)))) }

			c := clock{epoch: time.Now()}
			var onTheWay []int64 // what the server has said
			for range 50 {
				sleep()
				onTheWay = append(onTheWay, server().UnixMicro())
				sleep()
				if random.IntN(2) == 0 {
					i := random.IntN(len(onTheWay))
					c.observe(onTheWay[i], time.Now())
					onTheWay = append(onTheWay[:i], onTheWay[i+1:]...)
				}
				if !c.known {
					continue
				}
				for _, d := range []time.Duration{0, time.Second, -time.Second, time.Hour} {
					got, want := c.at(time.Now().Add(d)), server().Add(d).Add(resolution).UnixMicro()
					if got > want {
						t.Fatalf("seed %d: the estimate is %d µs ahead of the server", seed, got-want)
					}
				}
			}
		}
	})
}

func TestMain(m *testing.M) { redistest.Main(m) }
