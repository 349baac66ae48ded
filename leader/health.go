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

// Status is the body of the answers of Election.Handler.
type Status struct {
	Name     string `json:"name"`
	Identity string `json:"identity"` // of this candidate
	Leading  bool   `json:"leading"`  // this candidate leads
	// Leader is the leader that Redis knows. It is nil if nobody leads, or if Redis did not answer in time.
	Leader *LeaderStatus `json:"leader"`
}

// LeaderStatus describes the leader in a Status.
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

// Handler returns a handler for probes and for people. The handler answers 200 if this Election's Run
// leads, and 503 if it does not. The body is a Status as JSON. If Run leads, the handler answers at
// once, without asking Redis. Otherwise the handler asks Redis who leads, and waits for at most half a
// second. The status code does not depend on Redis.
//
// With the handler as a readiness probe, requests go only to the leader. For a liveness probe use Check.
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

// Elector makes an Election usable as gocron's Elector, for gocron's option WithDistributedElector: jobs
// then run only in the leader's process.
type Elector struct{ election *Election }

// Elector returns a value that implements gocron's Elector for this Election. The program must call the
// Election's Run.
func (e *Election) Elector() Elector { return Elector{e} }

// IsLeader returns nil if the Election's Run leads; otherwise an error that matches ErrNoLeader.
func (e Elector) IsLeader(context.Context) error {
	if e.election.IsLeader() {
		return nil
	}
	return e.election.failed("lead", errs.NoLeader)
}
