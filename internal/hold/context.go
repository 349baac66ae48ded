// Contexts that carry a lease and end with it.

package hold

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// leaseContext is a context that carries a lease.
type leaseContext struct {
	context.Context
	lease *Lease
}

// leaseKey is the key under which a context returns the nearest leaseContext in it.
type leaseKey struct{}

func (leaseKey) carriesALease() {}

func (h *leaseContext) Value(key any) any {
	if _, ok := key.(leaseKey); ok {
		return h
	}
	return h.Context.Value(key)
}

// nearest returns the nearest of the leases that ctx carries for which is returns true, or nil.
func nearest(ctx context.Context, is func(*Lease) bool) *Lease {
	for {
		h, ok := ctx.Value(leaseKey{}).(*leaseContext)
		if !ok {
			return nil
		}
		if is(h.lease) {
			return h.lease
		}
		ctx = h.Context
	}
}

// Carried returns the lease on the resource that ctx carries, or nil. That lease may have ended.
func Carried(ctx context.Context, e *engine.Engine, r Resource) *Lease {
	return nearest(ctx, func(l *Lease) bool { return l.hold.isOn(e, r) })
}

// ofWork reports whether ctx belongs to work that is under way: it carries a lease of that Client,
// on anything, that lasts, or is under a whole (a MultiLock or a Quorum) with such a lease.
func ofWork(ctx context.Context, e *engine.Engine) bool {
	return nearest(ctx, func(l *Lease) bool { return l.lastsAt(e) }) != nil || underOf(ctx, e)
}

// TurnedAway reports whether Shutdown has begun, and ctx does not belong to work that it waits for.
func TurnedAway(ctx context.Context, e *engine.Engine) bool {
	return e.Draining().Err() != nil && !ofWork(ctx, e)
}

// EndOfWaits returns the context whose end, with its cause, ends a wait that ctx belongs to: that of Shutdown or,
// in work that Shutdown waits for, that of Close.
func EndOfWaits(ctx context.Context, e *engine.Engine) context.Context {
	if ofWork(ctx, e) {
		return e.Closing()
	}
	return e.Draining()
}

// lastsAt reports whether l is a lease of that Client, and lasts.
func (l *Lease) lastsAt(e *engine.Engine) bool { return l.hold.engine == e && l.why() == nil }

// Bare is lease.Bare.
func Bare(ctx context.Context) context.Context { return bare{ctx} }

// bare is a context that carries no lease.
type bare struct{ context.Context }

func (b bare) Value(key any) any {
	if _, ok := key.(anyLeaseKey); ok {
		return nil
	}
	return b.Context.Value(key)
}

// anyLeaseKey is a key under which a context carries a lease, of whatever type.
type anyLeaseKey interface{ carriesALease() }

// isOn reports whether h is a hold of that Client on that resource.
func (h *hold) isOn(e *engine.Engine, r Resource) bool {
	return h.engine == e && h.resource.Key() == r.Key() && h.resource.Kind() == r.Kind()
}

// child is one context made by Lease.Context.
type child struct {
	cancel context.CancelCauseFunc
	forget func() bool // stops watching the parent
	over   bool        // the parent has ended; guarded by the hold's mutex
}

// Context is Context of lease.Lease.
func (l *Lease) Context(parent context.Context) context.Context {
	if l.absent() {
		return overContext(parent)
	}
	ctx, cancel := context.WithCancelCause(&leaseContext{parent, l})
	c := &child{cancel: cancel, forget: func() bool { return true }}
	if parent.Done() != nil {
		c.forget = context.AfterFunc(parent, func() { l.forget(c) })
	}

	h := l.hold
	h.mu.Lock()
	ended := l.because()
	if ended == nil && !c.over { // parent is the program's: under the mutex it must not be asked
		r := l.rarely()
		if r.children == nil {
			r.children = make(map[*child]struct{})
		}
		r.children[c] = struct{}{}
	}
	h.mu.Unlock()

	if ended != nil {
		c.forget()
		cancel(l.error(ended))
	}
	return ctx
}

// forget drops a child whose parent has ended.
func (l *Lease) forget(c *child) {
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	c.over = true
	if l.rare != nil {
		delete(l.rare.children, c)
	}
}
