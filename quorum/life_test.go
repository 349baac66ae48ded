package quorum

import (
	"context"
	"errors"
	"testing"
)

func TestTheContextsOfAQuorumEndBeforeDoneIsClosed(t *testing.T) {
	l := newLife()
	l.context(t.Context(), t.Context())
	cancelled := false
	for c := range l.children {
		cancel := c.cancel
		c.cancel = func(cause error) {
			select {
			case <-l.done:
				t.Error("done is closed before the context ends")
			default:
			}
			cancelled = true
			cancel(cause)
		}
	}
	over := errors.New("over")
	l.end(over)
	if !cancelled || !errors.Is(l.wait(), over) {
		t.Errorf("cancelled: %t, ended: %v", cancelled, l.err())
	}
	if late := l.context(t.Context(), t.Context()); !errors.Is(context.Cause(late), over) {
		t.Errorf("a context of a life that is over: %v", context.Cause(late))
	}
}
