// The estimate of a server's clock, from which not-afters are made.

package conn

import "time"

// clock estimates a server's clock from the times in its replies.
//
// It keeps the lower bound of the last reply: a server that said T in a reply
// received at R has reached at least T + (now - R), unless it was set back since. A not-after made from it is never later than
// meant; where the estimate is far behind, the script says Late, its reply
// corrects the estimate, and the call is sent again.
//
// It belongs to one connection, and is used by one goroutine at a time.
type clock struct {
	epoch  time.Time // local instant that the offset is counted from
	offset int64     // server microseconds minus local microseconds since epoch
	known  bool
}

// observe takes in that the server's clock stood at micros in a reply received
// at the instant received.
func (c *clock) observe(micros int64, received time.Time) {
	c.offset = micros - received.Sub(c.epoch).Microseconds()
	c.known = true
}

// at returns what the server's clock shows, at the least, at the local instant
// t. It must only be asked when known.
func (c *clock) at(t time.Time) int64 {
	return c.offset + t.Sub(c.epoch).Microseconds()
}
