// What is known of the holder by whom an acquisition was refused.

package hold

import (
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/line"
)

// Busy is the error of an acquisition that found the thing held. It matches errs.Busy. Package lease
// makes a BusyError of it.
type Busy struct {
	Holder Owner         // zero if it is not known
	Since  time.Time     // on the server's clock; zero if it is not known
	Left   time.Duration // NoExpiry: without end; 0: not known
	err    error
}

// BusyFor returns err as a Busy without a holder: the resource is barred for the time left.
func BusyFor(left time.Duration, err error) *Busy { return &Busy{Left: left, err: err} }

func (b *Busy) Error() string { return b.err.Error() }

func (b *Busy) Unwrap() error { return b.err }

// Naming is a Resource whose refusals say who holds the thing, and the last token that was given.
type Naming interface {
	Named(refused *conn.Reply) (holder Owner, token int64)
}

// refusal is the last refusal of an acquisition. It is parsed only if the acquisition fails: most
// acquisitions that are refused are granted later.
type refusal struct {
	reply conn.Reply // of the last request that was not a look
	sent  time.Time  // of that, or of a look since
	held  line.Held  // for how long the holder has the thing, from then on
	mark  Mark       // of the holder that a look has seen since; 0: there was no look
}

// busy adds to err what is known of the holder, if err says that there is one.
func (a *acquisition) busy(err error) error {
	if !errors.Is(err, errs.Busy) {
		return err
	}
	b, last := &Busy{err: err}, &a.refusal
	if last.reply.Len() == 0 {
		return b
	}
	b.Left = NoExpiry
	if left, ends := last.held.Left(); ends {
		b.Left = max(time.Until(last.sent.Add(left)), 0)
	}
	n, ok := a.resource.(Naming)
	if !ok {
		return b
	}
	var token int64
	b.Holder, token = n.Named(&last.reply)
	if last.mark != 0 && last.mark != a.resource.(Looking).Mark(b.Holder) {
		b.Holder = Owner{} // another has it by now
		return b
	}
	// Other programs write no token when they lock. A token ahead of the clock says nothing: the clock
	// was set back.
	client, _, _ := strings.Cut(b.Holder.String(), ":")
	if token > 0 && token <= last.reply.ServerTime() && engine.IsClient(client) {
		b.Since = time.UnixMicro(token)
	}
	return b
}
