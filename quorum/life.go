// The end of a lease, and the contexts that end with it.

package quorum

import (
	"context"
	"sync"
)

// life is the life of a lease, from its grant to its end.
type life struct {
	done chan struct{}

	mu       sync.Mutex
	ended    error // why it ended
	children map[*child]struct{}
}

// child is one context that ends with the life.
type child struct {
	cancel context.CancelCauseFunc
	forget func() bool // stops watching the parent
	over   bool        // the parent has ended; guarded by the life's mutex
}

func newLife() *life {
	return &life{done: make(chan struct{}), children: make(map[*child]struct{})}
}

// end ends the contexts first, and then the lease. It may be called once.
func (l *life) end(cause error) {
	l.mu.Lock()
	l.ended = cause
	children := l.children
	l.children = nil
	l.mu.Unlock()
	for c := range children {
		c.forget()
		c.cancel(cause)
	}
	close(l.done) // last, so that a goroutine that waited for it finds all contexts ended
}

func (l *life) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// wait returns why the lease has ended. If it is about to end, wait waits for that.
func (l *life) wait() error {
	<-l.done
	return l.err()
}

// context returns ctx, which is parent with a value added, as a context that ends with the life
// too. It is freed when parent ends.
func (l *life) context(parent, ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &child{cancel: cancel}
	c.forget = context.AfterFunc(parent, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		c.over = true
		delete(l.children, c)
	})
	l.mu.Lock()
	ended := l.ended
	if ended == nil && !c.over { // parent is the program's: under the mutex it must not be asked
		l.children[c] = struct{}{}
	}
	l.mu.Unlock()
	if ended != nil {
		c.forget()
		cancel(ended)
	}
	return ctx
}
