// What probes and schedulers ask: an HTTP handler, and gocron's Elector.

package leader

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// Status is the body of an answer of Election.Handler, as JSON.
type Status struct {
	Name     string `json:"name"`
	Identity string `json:"identity"` // the identity of the candidate that answers
	Leading  bool   `json:"leading"`  // whether the candidate that answers leads
	// Leader describes the present leader, in any process. Leader is nil if nobody leads, or if Redis has
	// not said within half a second who leads.
	Leader *LeaderStatus `json:"leader"`
}

// LeaderStatus describes the present leader in a Status. Its fields mean the same as the fields of Info.
type LeaderStatus struct {
	Identity string    `json:"identity"`
	Value    string    `json:"value"`
	Priority int       `json:"priority"`
	Token    int64     `json:"token"`
	Since    time.Time `json:"since"`
}

// handlerPatience is how long Handler waits for Redis to say who leads. The probes of Kubernetes wait
// for a second, if nothing else is said.
const handlerPatience = 500 * time.Millisecond

// Handler returns an HTTP handler for probes and for people. The handler answers with the status code 200
// if this Election's Run leads, and with 503 if this Election's Run does not lead. The body of the answer
// is a Status, as JSON. If Run leads, the handler answers at once and does not ask Redis. Otherwise the
// handler asks Redis who leads, and waits for that answer for at most half a second. The status code never
// depends on Redis.
//
// If you use the handler as a readiness probe, requests go only to the process of the leader. For a
// liveness probe, use Check instead of the handler.
func (e *Election) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := Status{Name: e.Name(), Identity: e.Identity()}
		if info, known := e.leads(r.Context()); known {
			s.Leader = &LeaderStatus{info.Identity, info.Value, info.Priority, info.Token, info.Since}
		}
		// It comes last, so that the code is right when it is sent.
		code := http.StatusServiceUnavailable
		if s.Leading = e.IsLeader(); s.Leading {
			code = http.StatusOK
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(s) // who asked has gone
	})
}

// leads returns who leads, and false if nobody does or Redis did not answer in time.
func (e *Election) leads(ctx context.Context) (info Info, known bool) {
	if t := engine.Made(e).current.Load(); t != nil && t.lasts() {
		return Info{Identity: e.config.identity, Value: e.config.value, Priority: e.config.priority,
			Token: t.Token(), Since: time.UnixMicro(t.since)}, true
	}
	ctx, cancel := context.WithTimeout(ctx, handlerPatience)
	defer cancel()
	info, err := e.Leader(ctx)
	return info, err == nil
}

// Elector implements gocron's interface Elector for one Election. Give the Elector to gocron's option
// WithDistributedElector. gocron then runs jobs only in the process whose Election leads.
type Elector struct{ election *Election }

// Elector returns a value that implements gocron's interface Elector for this Election. The program must
// also call this Election's Run, because an Election never leads without Run.
func (e *Election) Elector() Elector { return Elector{e} }

// IsLeader returns nil if the Election's Run leads at this moment. Otherwise IsLeader returns an error
// that matches ErrNoLeader. IsLeader does no I/O.
func (e Elector) IsLeader(context.Context) error {
	if e.election.IsLeader() {
		return nil
	}
	return e.election.failed("lead", errs.NoLeader)
}
