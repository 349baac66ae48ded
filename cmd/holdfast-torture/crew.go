// The crew: the contenders, as processes that are started, stopped and killed.

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// crew holds the contenders. The first of them are steady; the others are killed now and then,
// and replaced.
type crew struct {
	t      testing.TB
	orders orders
	log    *log

	mu       sync.Mutex
	members  []*redistest.ChildProc
	epoch    int64
	replaced int
	problems []string
}

// newCrew starts n contenders.
func newCrew(t testing.TB, n int, o orders, l *log) *crew {
	c := &crew{t: t, orders: o, log: l}
	for i := range n {
		c.members = append(c.members, c.start(i, fmt.Sprint(i)))
	}
	return c
}

func (c *crew) start(place int, name string) *redistest.ChildProc {
	o := c.orders
	o.Name, o.Steady, o.Leads, o.Epoch = name, place < steady, place == 0, c.epoch
	text, err := json.Marshal(o)
	if err != nil {
		c.t.Fatalf("%v", err)
	}
	return redistest.Start(c.t, childName, map[string]string{envOrders: string(text)})
}

// kill kills one contender that is not steady, and starts another in its place.
func (c *crew) kill(r *rand.Rand) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.members) <= steady {
		return
	}
	place := steady + r.IntN(len(c.members)-steady)
	from := stamp(time.Now())
	c.hear(c.members[place])
	c.members[place].Kill()
	c.replaced++
	c.members[place] = c.start(place, fmt.Sprintf("%d+%d", place, c.replaced))
	// What it held is held until the lease is over.
	c.log.shadow(from, stamp(time.Now().Add(c.orders.Lease)))
}

// stop stops a contender for up to two leases and a half.
func (c *crew) stop(r *rand.Rand) {
	c.mu.Lock()
	member := c.members[r.IntN(len(c.members))]
	c.mu.Unlock()
	from := stamp(time.Now())
	member.Freeze()
	time.Sleep(time.Duration(r.Int64N(int64(5 * c.orders.Lease / 2))))
	member.Thaw()
	// What was granted to it while it was stopped is held until the lease is over.
	c.log.shadow(from, stamp(time.Now().Add(c.orders.Lease)))
}

// nextEpoch makes the crew abandon the objects that have no leases and may have been forgotten.
func (c *crew) nextEpoch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	for _, m := range c.members {
		m.Send("%s%d", epochs, c.epoch)
	}
}

// unresolve makes the crew resolve no name for the time d.
func (c *crew) unresolve(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		m.Send("%s%v", unresolving, d)
	}
}

// hear keeps the lines of a contender. There should be none.
func (c *crew) hear(m *redistest.ChildProc) {
	for {
		line, ok := m.TryLine(0)
		if !ok {
			return
		}
		c.problems = append(c.problems, "a contender says: "+line)
	}
}

// dismiss makes all contenders finish, and returns their complaints.
func (c *crew) dismiss() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		m.Send("finish")
	}
	for _, m := range c.members {
		for {
			line := m.Line()
			if line == "bye" {
				break
			}
			c.problems = append(c.problems, "a contender says: "+strings.TrimSpace(line))
		}
		if err := m.Wait(); err != nil {
			c.problems = append(c.problems, fmt.Sprintf("a contender ended with %v", err))
		}
	}
	return c.problems
}
