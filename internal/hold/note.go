// Notes: what a holder says about its work, for those who look at what is held.

package hold

import "context"

// Note is Note of lease.Lease.
func (l *Lease) Note(text string) {
	if l.absent() {
		return
	}
	l.hold.mu.Lock()
	if l.ended != notYet {
		l.hold.mu.Unlock()
		return
	}
	l.rarely().noted = true
	l.hold.mu.Unlock()
	l.hold.engine.Note(l.hold.number, l, text)
	if l.why() != nil {
		l.unnote() // it may have ended just before
	}
}

func (l *Lease) unnote() { l.hold.engine.Note(l.hold.number, l, "") }

// Note is lease.Note.
func Note(ctx context.Context, text string) {
	if h, ok := ctx.Value(leaseKey{}).(*leaseContext); ok {
		h.lease.Note(text)
	}
}
