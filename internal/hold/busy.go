// What is known of the holder by whom an acquisition was refused.

package hold

import (
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// Busy is the error of an acquisition that found the thing held. It matches errs.Busy. Package lease
// makes a BusyError of it.
type Busy struct {
	Refusal
	err error
}

func (b *Busy) Error() string { return b.err.Error() }

func (b *Busy) Unwrap() error { return b.err }

// Refusal is what the last refusal of an acquisition said.
type Refusal struct {
	Holder Owner     // zero if it is not known
	Since  time.Time // on the server's clock; zero if it is not known
	until  time.Time // when the holder's time to live is over, here; zero if it is not known
	always bool      // it has no end
}

// Left returns for how long the holder holds on if it neither renews nor releases; NoExpiry: without
// end; 0: it is over, or not known.
func (r Refusal) Left() time.Duration {
	if r.always {
		return NoExpiry
	}
	return max(time.Until(r.until), 0)
}

// Naming is a Resource whose refusals say who holds the thing, and the last token that was given.
type Naming interface {
	Named(refused *conn.Call) (holder Owner, token int64)
}

// refused takes in a refusal.
func (a *acquisition) refused(call *conn.Call) {
	left := ttlOf(call)
	a.refusal = Refusal{until: call.Sent.Add(left), always: left < 0}
	n, ok := a.resource.(Naming)
	if !ok {
		return
	}
	var token int64
	a.refusal.Holder, token = n.Named(call)
	// Other programs write no token when they lock. A token ahead of the clock says nothing: the clock
	// was set back.
	client, _, _ := strings.Cut(a.refusal.Holder.String(), ":")
	if token > 0 && token <= call.ServerTime() && engine.IsClient(client) {
		a.refusal.Since = time.UnixMicro(token)
	}
}

// busy adds to err what is known of the holder, if err says that there is one.
func (a *acquisition) busy(err error) error {
	if !errors.Is(err, errs.Busy) {
		return err
	}
	return &Busy{a.refusal, err}
}
