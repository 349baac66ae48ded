package conn

import (
	"sync/atomic"
	"time"
)

// clock estimates a server's clock from the times in its replies.
//
// It keeps the lower bound: a server that said T in a reply received at R has
// reached at least T + (now - R). A not-after made from it is never later than
// meant; where the estimate is far behind, the script says Late, its reply
// corrects the estimate, and the call is sent again.
type clock struct {
	epoch  time.Time    // local instant that offsets are counted from
	offset atomic.Int64 // server microseconds minus local microseconds since epoch
	known  atomic.Bool
}

// observe takes in that the server's clock stood at micros in a reply received
// at the instant received.
func (c *clock) observe(micros int64, received time.Time) {
	c.offset.Store(micros - received.Sub(c.epoch).Microseconds())
	c.known.Store(true)
}

// at returns what the server's clock shows, at the least, at the local instant
// t. It must only be asked when known.
func (c *clock) at(t time.Time) int64 {
	return c.offset.Load() + t.Sub(c.epoch).Microseconds()
}

// forget drops the estimate: the next connection may lead to another server.
func (c *clock) forget() { c.known.Store(false) }
