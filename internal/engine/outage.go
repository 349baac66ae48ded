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
	now := time.Now()
	e.outages.mu.Lock()
	o := e.outages.byNode[node]
	if o == nil {
		if outcome == nil {
			e.outages.mu.Unlock()
			return
		}
		if e.outages.byNode == nil {
			e.outages.byNode = make(map[string]*outage)
		}
		o = new(outage)
		e.outages.byNode[node] = o
	}
	before := *o
	switch {
	case outcome == nil:
		o.since, o.told = time.Time{}, false
	case o.since.IsZero():
		o.since, o.told = now, now.Sub(o.said) >= outageQuiet
		if o.told {
			o.said = now
		}
	}
	after := *o
	e.outages.mu.Unlock()

	switch {
	case !before.told && after.told:
		e.Log.Warn("holdfast: renewals fail; they are tried again until their leases are over",
			"server", node, "error", outcome)
	case before.told && outcome == nil:
		e.Log.Info("holdfast: renewals get through again", "server", node, "after", LogTime(now.Sub(before.since)))
	}
}

// noneThrough returns one of the errors if there is one for each renewal, else nil.
func noneThrough(outcomes []error) error {
	var last error
	for _, err := range outcomes {
		if err == nil {
			return nil
		}
		last = err
	}
	return last
}
