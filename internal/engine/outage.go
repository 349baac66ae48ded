// The log lines about renewals: when they begin to fail, when they get through again, and when they
// come late.

package engine

import (
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/renewal"
)

// outages records the servers that renewals do not get through to. The loss of a lease is logged
// only when it happens. That renewals fail is known up to two thirds of a lease earlier.
type outages struct {
	mu     sync.Mutex
	byAddr map[string]*outage
	late   time.Time // when it was last logged that renewals come late
}

// outage is the record of one server.
type outage struct {
	since time.Time // when the first renewal failed; zero while they get through
	said  time.Time // when it was last logged that an outage has begun
	told  bool      // this outage was logged
}

// outageQuiet is how long after one outage was logged the next one of the same server is
// not logged, so that a server that comes and goes does not fill the log.
const outageQuiet = 10 * time.Second

// tried takes in the outcome of renewals that were sent to a server at one time. outcome is
// an error if none of them got through, else nil.
func (s *sender) tried(addr string, outcome error) {
	if errors.Is(outcome, errs.Closed) {
		return
	}
	switch begun, lasted := s.outages.take(addr, outcome != nil, time.Now()); {
	case begun:
		s.e.Log.Warn("holdfast: renewals fail; they are tried again until their leases are over",
			"server", addr, "error", outcome)
	case lasted > 0:
		s.e.Log.Info("holdfast: renewals get through again", "server", addr, "after", LogTime(lasted))
	}
}

// errUnanswered is the error in the log line about renewals that have no answer yet.
var errUnanswered = errors.New("no answer has come yet")

// unanswered logs that renewals fail if they are not answered within two tries. When they are answered, the
// caller calls the function that unanswered returns before it reports that.
func (s *sender) unanswered(addr string, try time.Duration) (answered func() bool) {
	return time.AfterFunc(2*try, func() { s.tried(addr, errUnanswered) }).Stop
}

// take takes in one outcome. begun says that the beginning of an outage is to be logged. If an
// outage that was logged is over now, lasted is how long it was, else 0.
func (o *outages) take(addr string, failed bool, now time.Time) (begun bool, lasted time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.byAddr[addr]
	switch {
	case at == nil && !failed:
	case !failed:
		if at.told {
			lasted = now.Sub(at.since)
		}
		at.since, at.told = time.Time{}, false
	case at == nil:
		if o.byAddr == nil {
			o.byAddr = make(map[string]*outage)
		}
		o.byAddr[addr] = &outage{since: now, said: now, told: true}
		begun = true
	case at.since.IsZero():
		begun = now.Sub(at.said) >= outageQuiet
		at.since, at.told = now, begun
		if begun {
			at.said = now
		}
	}
	return begun, lasted
}

// behind logs that more renewals are due than get through, if the most urgent task of a batch has
// less than half of its lease left, and more tasks wait. If that goes on, leases will be lost
// although the server answers.
func (s *sender) behind(addr string, urgent renewal.Task, waiting int) {
	s.e.measure(func() { s.e.Telemetry.RenewalBacklog(waiting) })
	deadline, try := urgent.Urgency()
	now := time.Now()
	left := deadline.Sub(now)
	if waiting > 0 && left < 3*try && s.outages.sayLate(now) {
		s.e.Log.Warn("holdfast: renewals come late: more are due than get through",
			"server", addr, "waiting", waiting, "left", LogTime(max(left, 0)))
	}
}

// sayLate reports whether to log now that renewals come late: not again soon after the last time.
func (o *outages) sayLate(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Sub(o.late) < outageQuiet {
		return false
	}
	o.late = now
	return true
}

// noneThrough returns one of the errors if every renewal failed, else nil. A value of another type
// at a lease's key is an answer about that lease alone, so it is no failure.
func noneThrough(outcomes []error) error {
	var last error
	for _, err := range outcomes {
		if err == nil || errors.Is(err, errs.WrongType) {
			return nil
		}
		last = err
	}
	return last
}
