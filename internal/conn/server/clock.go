// The estimate of a server's clock, from which not-afters are computed.

package server

import "time"

// clock estimates a server's clock from the times in its replies.
//
// It keeps the lower bound that the last reply gives: a server that reported T in a reply
// received at R has reached at least T + (now - R), unless its clock was set back since. So a
// not-after computed from it is never later than meant. If the estimate is too far behind, the
// script answers Late; that reply corrects the estimate, and the call is sent again.
//
// A clock belongs to one connection, and one goroutine uses it at a time.
type clock struct {
	epoch  time.Time // the local time that the offset is counted from
	offset int64     // server microseconds minus local microseconds since epoch
	known  bool
}

// observe records that the server's clock showed micros in a reply received at the given local
// time.
func (c *clock) observe(micros int64, received time.Time) {
	c.offset = micros - received.Sub(c.epoch).Microseconds()
	c.known = true
}

// at returns the least that the server's clock shows at the local time t. It must only be
// called if known is set.
func (c *clock) at(t time.Time) int64 {
	return c.offset + t.Sub(c.epoch).Microseconds()
}
