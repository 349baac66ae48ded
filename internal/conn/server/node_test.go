// A server that is given up takes no more requests.

package server

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn/call"
	"github.com/holdfast-go/holdfast/internal/conn/fault"
)

func TestANodeThatWasGivenUpSendsItsCallersOn(t *testing.T) {
	n := New("", &redis.Options{}, nil, nil)
	n.renewals.wires = []*wire{{node: n}}
	if !n.renewals.inUse() {
		t.Error("a connection for renewals would be forgotten, and never closed")
	}
	n.renewals.wires = nil
	if !n.Retire() {
		t.Fatal("was not given up, though nothing is on it")
	}
	r := &request{call: &call.Call{}}
	if w := n.callers.board(r); w != nil || fault.Judge(r.err) != fault.Anew {
		t.Errorf("%v, %v, want that the caller looks anew", w, r.err)
	}
	if _, err := n.takeRenewals(t.Context()); fault.Judge(err) != fault.Anew {
		t.Errorf("renewals: %v, want that their caller looks anew", err)
	}
}

func TestOnlyALoneCallerLooks(t *testing.T) {
	n := New("", new(redis.Options), nil, nil)
	c := &n.callers
	for range 2 {
		c.wires = append(c.wires, &wire{node: n})
	}
	c.free = append(c.free, c.wires...)
	first, second := c.board(&request{call: new(call.Call)}), c.board(&request{call: new(call.Call)})
	if !first.alone || second.alone {
		t.Errorf("the first caller looks: %t, want true; the second, beside it: %t, want false", first.alone, second.alone)
	}
}
