// A simulation: members come, leave, die, are cut off and lose replies at random. The stage sees whether two work on a
// shard at a time, and whether its tokens grow:
//
//	HOLDFAST_LONG=1 go test -run TestSimulation ./shards    # 100 members, 1,000 shards

package shards_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/shards"
)

func TestSimulation(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	play(t, redistest.Count(t, 1000), func(t *testing.T, s *stage) {
		c := &churn{stage: s, r: rand.New(rand.NewPCG(seed, 0)), most: redistest.Count(t, 100)}
		steps := []func(){c.join, c.join, c.join, c.leave, c.die, c.cutOff, c.loseReplies}
		for range redistest.Count(t, 200) {
			steps[c.r.IntN(len(steps))]()
			s.At(s.Now() + time.Duration(c.r.Int64N(int64(15*time.Second))))
		}
		c.heal()
		s.At(s.Now() + usual + time.Minute)
		c.wantEven()
	})
}

const usual = 30 * time.Second // the default

// churn is what happens to the members.
type churn struct {
	*stage
	r     *rand.Rand
	most  int // members at a time
	in    []*member
	count int
}

func (c *churn) join() {
	if len(c.in) == c.most {
		return
	}
	c.count++
	stops := time.Duration(c.r.Int64N(int64(2 * time.Second))) // within its grace
	c.in = append(c.in, c.joinOf(c.Process(), fmt.Sprint(c.count), stops, nil, shards.Grace(3*time.Second)))
}

// one takes a member out of those that are in, or returns nil.
func (c *churn) one() *member {
	if len(c.in) == 0 {
		return nil
	}
	i := c.r.IntN(len(c.in))
	m := c.in[i]
	c.in = slices.Delete(c.in, i, i+1)
	return m
}

func (c *churn) leave() {
	if m := c.one(); m != nil {
		m.p.Unplug(false)
		m.retire()
	}
}

func (c *churn) die() {
	if m := c.one(); m != nil {
		m.p.Unplug(true)
	}
}

// cutOff takes a member off the network, or puts it back.
func (c *churn) cutOff() {
	if m := c.one(); m != nil {
		m.p.Unplug(c.r.IntN(3) > 0)
		c.in = append(c.in, m)
	}
}

// loseReplies has one in five requests of a member fail, before Redis has it or after, from now on.
func (c *churn) loseReplies() {
	m := c.one()
	if m == nil {
		return
	}
	c.in = append(c.in, m)
	faults := []redistest.Fault{redistest.DropBefore, redistest.CloseAfterExec, redistest.Delay(2 * time.Second)}
	m.p.Each(func(s world.Sending) redistest.Fault {
		if s.N%5 == 0 {
			return faults[s.N/5%len(faults)]
		}
		return redistest.Pass
	})
}

func (c *churn) heal() {
	for _, m := range c.in {
		m.p.Each(nil)
		m.p.Unplug(false)
	}
	if len(c.in) == 0 {
		c.join()
	}
}

// wantEven fails the test unless the members that are left have all shards, each as many as another, or one more.
func (c *churn) wantEven() {
	c.shares() // lets what is under way end
	c.mu.Lock()
	defer c.mu.Unlock()
	all, least, most := 0, c.size, 0
	for _, m := range c.in {
		all, least, most = all+len(m.has), min(least, len(m.has)), max(most, len(m.has))
	}
	if all != c.size || most-least > 1 {
		c.T.Errorf("%d members work on %d of %d shards, each on %d to %d", len(c.in), all, c.size, least, most)
	}
}
