// What a viewer may start by hand: Client.Check, and a release by force if the console may change anything.

package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

// checks keeps what Check has found, for a minute: Check writes a name of its own, and asks much.
type checks struct {
	mu   sync.Mutex
	last checked
}

// checked is what Check has found.
type checked struct {
	At       int64     `json:"at"` // when, in ms of this process's clock; 0 if never
	Findings []finding `json:"findings"`
	Error    string    `json:"error,omitempty"`
	Silent   bool      `json:"silent,omitempty"` // Redis does not answer
}

// finding is a Finding as the page gets it.
type finding struct {
	Server  string `json:"server"`
	Problem string `json:"problem"`
	Kind    string `json:"kind,omitempty"`
	Detail  string `json:"detail"`
	Voids   bool   `json:"voids"` // it voids a promise
}

const (
	checkKept    = time.Minute
	failureKept  = 5 * time.Second // of what Check could not find out
	checkAllowed = 30 * time.Second
)

// check asks Check, unless somebody has within a minute, and answers what it has found.
func (s *Server) check(w http.ResponseWriter, r *http.Request) {
	if !s.allowed(w, r) {
		return
	}
	s.checks.mu.Lock() // the others wait, and get the same
	defer s.checks.mu.Unlock()
	kept := checkKept
	if s.checks.last.Error != "" {
		kept = failureKept
	}
	if time.Since(time.UnixMilli(s.checks.last.At)) > kept {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), checkAllowed)
		defer cancel()
		s.checks.last = s.askCheck(ctx)
	}
	answer(w, http.StatusOK, s.checks.last)
}

func (s *Server) askCheck(ctx context.Context) checked {
	found, err := s.Client.Check(ctx)
	out := checked{At: ms(time.Now()), Findings: []finding{}}
	if err != nil {
		out.Error, out.Silent = err.Error(), silent(err)
	}
	for _, f := range found {
		voids := f.Problem != holdfast.Connections && f.Problem != holdfast.Servers
		out.Findings = append(out.Findings, finding{f.Server, string(f.Problem), f.Kind, f.Detail, voids})
	}
	return out
}

// Release takes what is stored at a name from its holders by force, for a viewer at that address, and returns from whom;
// nobody if nobody held it. If permit is not "", it takes that permit, or the one whose id begins so. Before it takes
// anything, it gives willTake the holders, and takes nothing if that returns an error.
type Release func(ctx context.Context, name, permit, viewer string, willTake func(Holders) error) (Holders, error)

// Holders are those from whom something is taken.
type Holders = []holdfast.Holder

// wanted is a release that a page asks for.
type wanted struct {
	ID     string   `json:"id"`     // the name, escaped
	Typed  string   `json:"typed"`  // the name, as the viewer has typed it
	From   []string `json:"from"`   // the holders that the viewer has seen, shortened
	Permit string   `json:"permit"` // shortened
}

// release takes a name from its holders, and answers from whom.
func (s *Server) release(w http.ResponseWriter, r *http.Request) {
	if !s.allowed(w, r) {
		return
	}
	if s.Release == nil {
		s.refuse(w, r, http.StatusForbidden, "a release", "this console only reads: start it with --allow-release")
		return
	}
	var want wanted
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&want); err != nil {
		s.refuse(w, r, http.StatusBadRequest, "a release", "this is not a release: "+err.Error())
		return
	}
	name, err := url.PathUnescape(want.ID)
	what := "a release of " + view.Name(name)
	if err != nil || want.Typed != name && want.Typed != view.Name(name) {
		why := "the name that was typed is another one; nothing was changed"
		s.refuse(w, r, http.StatusUnprocessableEntity, what, why)
		return
	}
	if !s.within(name) {
		s.refuse(w, r, http.StatusForbidden, what, s.outside(name))
		return
	}
	// A viewer that goes does not stop it halfway.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), releaseAllowed)
	defer cancel()
	from, err := s.takeFrom(ctx, name, addressOf(r), want)
	switch {
	case errors.Is(err, errDoubt):
		s.audit.doubted(r, name, err)
		http.Error(w, err.Error(), http.StatusConflict)
		return
	case err != nil:
		s.refuse(w, r, http.StatusConflict, what, err.Error())
		return
	}
	s.audit.released(r, name, from)
	out := []holder{}
	for _, h := range from {
		out = append(out, holderOf(view.HolderOf("", h, false), 0)) // a slot is not freed here
	}
	answer(w, http.StatusOK, struct {
		From []holder `json:"from"`
	}{out})
}

const releaseAllowed = 15 * time.Second

var (
	errChanged = errors.New("has changed hands, and nothing was changed")
	errDoubt   = errors.New("it may have been taken") // an answer may be lost
)

// takeFrom takes a name from those that the viewer has seen, if they still hold it.
func (s *Server) takeFrom(ctx context.Context, name, viewer string, want wanted) (Holders, error) {
	back, tried := func() {}, false
	from, err := s.Release(ctx, name, want.Permit, viewer, func(holders Holders) error {
		if !seen(holders, want.From) {
			return fmt.Errorf("%s %w", view.Name(name), errChanged)
		}
		back, tried = s.past.claim(name, holders), true
		return nil
	})
	if len(from) == 0 {
		back()
	}
	if err != nil && tried {
		err = fmt.Errorf("%w; %w", err, errDoubt)
	}
	return from, err
}

// seen reports whether a viewer has seen all these holders; of very many, it has seen some.
func seen(holders []holdfast.Holder, short []string) bool {
	there := make(map[string]int)
	for _, s := range short {
		there[s]++
	}
	missed := 0
	for _, h := range holders {
		safe := view.HolderOf("", h, false)
		if id := safe.Owner + safe.Permit; there[id] > 0 {
			there[id]--
		} else {
			missed++
		}
	}
	return missed == 0 || len(short) >= shownOfOne && missed <= len(holders)-len(short)
}
