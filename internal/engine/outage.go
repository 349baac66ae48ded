// What the log says of renewals that fail: when that begins, and when it is over.

package engine

import (
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// outages are the servers that renewals do not get through to. A lease that is lost is
// logged when it is lost; that renewals fail is known up to two thirds of a lease before.
type outages struct {
	mu     sync.Mutex
	byNode map[string]*outage
}

// outage is one server's.
type outage struct {
	since time.Time // when the first renewal failed; zero while they get through
	said  time.Time // when the log was told last of a beginning
	told  bool      // the log was told of this one
}

// outageQuiet is how long after one outage the next of that server is not logged: of a
// server that comes and goes.
const outageQuiet = 10 * time.Second

// renewalsTried takes in what became of renewals that were sent to a server at a time:
// outcome is an error if none of them got through.
func (e *Engine) renewalsTried(node string, outcome error) {
	if errors.Is(outcome, errs.Closed) {
		return
	}
	switch begun, lasted := e.outages.take(node, outcome != nil, time.Now()); {
	case begun:
		e.Log.Warn("holdfast: renewals fail; they are tried again until their leases are over",
			"server", node, "error", outcome)
	case lasted > 0:
		e.Log.Info("holdfast: renewals get through again", "server", node, "after", LogTime(lasted))
	}
}

// take takes in one outcome. It reports whether the log is to be told that an outage has begun;
// or how long one has lasted that the log was told of, and that is over.
func (o *outages) take(node string, failed bool, now time.Time) (begun bool, lasted time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.byNode[node]
	switch {
	case at == nil && !failed:
	case !failed:
		if at.told {
			lasted = now.Sub(at.since)
		}
		at.since, at.told = time.Time{}, false
	case at == nil:
		if o.byNode == nil {
			o.byNode = make(map[string]*outage)
		}
		o.byNode[node] = &outage{since: now, said: now, told: true}
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

// noneThrough returns one of the errors if there is one for each renewal, else nil. That
// another type of value stands at a lease's key is an answer about that lease alone.
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
