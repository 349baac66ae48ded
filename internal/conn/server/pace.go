// The pace of a server: how long it is given for a reply.

package server

import (
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn/call"
)

// Pace is shared by all connections of a Manager to one server. A server that is silent for longer
// than its patience is taken for frozen, and the request is sent again on a new connection. If that
// were always the same second, a server that needs longer would never be heard, and each try would
// add a connection to its load. So the patience doubles each time, up to the program's ReadTimeout,
// and with each reply that took more than three quarters of it. It goes back by half with each that came
// in a quarter of it.
type Pace struct {
	least, most time.Duration
	now         atomic.Int64 // ns
	widened     atomic.Int64 // when a request was last given more than Window, in ns since 1970; 0: never
	late        atomic.Int64 // how long the last reply took, in ns, if that was longer than least; otherwise 0
}

// NewPace returns the pace of a server which the program gives that long for a reply.
func NewPace(most time.Duration) *Pace {
	p := &Pace{least: min(most, ioTimeout), most: most}
	p.now.Store(int64(p.least))
	return p
}

// patience returns how long the server is given for a reply now.
func (p *Pace) patience() time.Duration { return time.Duration(p.now.Load()) }

// slow reports whether the server has lately needed longer than most servers do. Then scripts are sent
// whole, because a first try by hash that fails would cost one more slow reply.
func (p *Pace) slow() bool { return p.patience() > p.least }

// window returns for how long after its sending a request that is sent now may take effect.
func (p *Pace) window(now time.Time) time.Duration {
	d := p.patience()
	if d <= call.Window {
		return call.Window
	}
	p.widened.Store(now.UnixNano())
	return d
}

// wide reports whether a request that had more than Window may still take effect.
func (p *Pace) wide(now time.Time) bool {
	at := p.widened.Load()
	return at != 0 && now.Sub(time.Unix(0, at)) < 2*call.MaxWindow
}

// raise doubles the patience if that is still what it was: no reply came within it, or only just. Of the waits
// that ended together only one counts.
func (p *Pace) raise(patience time.Duration) {
	p.now.CompareAndSwap(int64(patience), int64(min(2*patience, p.most)))
}

// needs returns how long two requests, one sent after the other, may take to be answered; 0 unless the
// server is known to be slow. A server that does not answer at all does not count as slow: it may never
// answer.
func (p *Pace) needs() time.Duration {
	took := p.late.Load()
	if took == 0 {
		return 0
	}
	return p.patience() + time.Duration(took)
}

// heard records how long a reply took.
func (p *Pace) heard(took time.Duration) {
	if took > p.least {
		p.late.Store(int64(took))
	} else if p.late.Load() != 0 {
		p.late.Store(0)
	}
	switch now := p.patience(); {
	case took > now-now/4:
		p.raise(now) // the next reply may be too late, and the script may have been
	case now > p.least && took < now/4:
		p.now.CompareAndSwap(int64(now), int64(max(now/2, p.least)))
	}
}
