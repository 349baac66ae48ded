// What a child sends to its parent.

package main

import (
	"sync/atomic"
	"time"
)

// state is how far a child has come.
type state struct {
	Granted int64 // locks that it was granted, or pairs that it has done
	Lost    int64 // leases of whose loss it was notified, or which it could not have
	Served  int64 // waiters that were granted what they waited for
	Dials   int64 // connections that it has tried to make
	CPU     time.Duration
	RSS     int64 // memory that it has, in bytes
}

// progress is a state that changes.
type progress struct{ granted, lost, served, dials atomic.Int64 }

func (p *progress) state() state {
	return state{Granted: p.granted.Load(), Lost: p.lost.Load(), Served: p.served.Load(), Dials: p.dials.Load()}
}
