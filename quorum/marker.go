// The marker of a server, which shows that the server has kept its data.

package quorum

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// origin is the event from which on a server is known to have kept its data: see the states of a
// marker in the package's comment. Its text is what the marker begins with.
type origin string

const (
	noMarker    origin = ""
	foundEmpty  origin = "empty" // the server had no marker when a round asked it
	quorumBegan origin = "new"   // a quorum began with the server
	dataLost    origin = "lost"  // the server was found to have lost its data
)

// marker is what a server's marker says. The zero marker stands for a server that was not asked.
type marker struct {
	asked bool
	text  string // as the server has it
	since origin
	age   time.Duration // since it was written: see engine.Aging; negative if the server's clock was set back
	set   string        // the set of servers for which it was written
}

// marking says which marker is to be written, if the server's state allows that: see mark.lua.
type marking struct {
	write   origin // noMarker: none, the marker is only read
	set     string
	replace string // the marker in whose place quorumBegan is written
}

// mark writes the server's marker, as w says, and returns the one that is there then.
func (m Member) mark(ctx context.Context, w marking) (marker, error) {
	call := &conn.Call{Script: markScript, Keys: []string{m.Engine.Keys.QuorumMarker()}, Args: []any{string(w.write), w.set, w.replace}, Prompt: true}
	if err := m.Engine.Conn.Run(ctx, call); err != nil {
		return marker{}, err
	}
	text := call.ResultText()
	parts := strings.SplitN(text, ":", 3)
	parts = append(parts, "", "")
	micros, err := strconv.ParseInt(parts[1], 10, 64)
	if parts[0] != "" && err != nil {
		return marker{}, fmt.Errorf("the key %s holds no marker: %w", m.Engine.Keys.QuorumMarker(), errs.WrongType)
	}
	age := m.Engine.Marker.Of(text, time.Duration(call.ServerTime()-micros)*time.Microsecond)
	return marker{asked: true, text: text, since: origin(parts[0]), age: age, set: parts[2]}, nil
}

// ProbeMarker asks one server for its marker, for Client.Check. servers is how many servers the quorum
// that wrote the marker has. servers is 0 if there is no marker, or if the marker does not say how many.
func ProbeMarker(ctx context.Context, e *engine.Engine) (servers int, err error) {
	m, err := Member{Engine: e}.mark(ctx, marking{})
	number, _, _ := strings.Cut(m.set, "-")
	servers, _ = strconv.Atoi(number)
	return servers, err
}

// beganOn reports whether a quorum of exactly that set of servers began with the marker's server.
// Then no lease of any lock on the set is older than the marker. A marker of another set says only
// that the server had no data then: the server may have lost leases of this set.
func (m marker) beganOn(set string) bool { return m.since == quorumBegan && m.set == set }

// trusts reports whether the leases on this set that the marker's server may have forgotten are all
// over.
func (q *Quorum) trusts(m marker) bool {
	return m.beganOn(q.set) || (m.since == quorumBegan || m.since == dataLost) && m.age >= q.longest
}
