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
	n.renewals.idle = []*wire{{node: n}}
	if !n.inUse() {
		t.Error("an idle connection for renewals would be forgotten, and never closed")
	}
	n.renewals.idle = nil
	if !n.Retire() {
		t.Fatal("was not given up, though nothing is on it")
	}
	r := &request{call: &call.Call{}}
	if w := n.board(r); w != nil || fault.Judge(r.err) != fault.Anew {
		t.Errorf("%v, %v, want that the caller looks anew", w, r.err)
	}
	if _, err := n.takeRenewals(t.Context()); fault.Judge(err) != fault.Anew {
		t.Errorf("renewals: %v, want that their caller looks anew", err)
	}
}

func TestOnlyALoneCallerLooks(t *testing.T) {
	n := oneNode("", new(redis.Options), nil, newGate(ioTimeout))
	for range 2 {
		n.wires = append(n.wires, &wire{node: n})
	}
	n.free = append(n.free, n.wires...)
	first, second := n.board(&request{call: new(call.Call)}), n.board(&request{call: new(call.Call)})
	if !first.alone || second.alone {
		t.Errorf("the first caller looks: %t, want true; the second, beside it: %t, want false", first.alone, second.alone)
	}
}
