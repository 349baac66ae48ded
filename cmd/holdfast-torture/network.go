// The wire between contenders and servers: proxies, and faults that meet one
// command each.

package main

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// wireClasses are the faults that meet one script on its way.
var wireClasses = []string{
	"request late", "request twice", "request lost", "reply lost", "reply never comes", "reply late", "reply halved",
}

// network is a proxy in front of each server.
type network struct {
	t       testing.TB
	proxies []*redistest.FaultProxy
	routes  map[string]string
	timers  sync.WaitGroup

	mu    sync.Mutex
	armed []armed
}

// armed is a fault that waits for a script to meet.
type armed struct {
	fault redistest.Fault
	met   func()
}

// newNetwork puts a proxy in front of each server.
func newNetwork(t testing.TB, servers ...*redistest.Proc) *network {
	n := &network{t: t, routes: map[string]string{}}
	for _, s := range servers {
		p := redistest.Proxy(t, s.Addr())
		p.OnCommand(n.meet)
		n.proxies = append(n.proxies, p)
		n.routes[s.Addr()] = p.Addr()
	}
	t.Cleanup(n.timers.Wait)
	return n
}

// meet gives the next script the fault that was armed first.
func (n *network) meet(c redistest.Command) redistest.Fault {
	if c.Name != "EVALSHA" && c.Name != "EVAL" {
		return redistest.Pass
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.armed) == 0 {
		return redistest.Pass
	}
	a := n.armed[0]
	n.armed = n.armed[1:]
	a.met()
	return a.fault
}

// arm has the next script meet a fault of that class. met is called when it does.
func (n *network) arm(class string, r *rand.Rand, met func()) {
	a := armed{fault: n.fault(class, r), met: met}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.armed = append(n.armed, a)
}

func (n *network) fault(class string, r *rand.Rand) redistest.Fault {
	d := time.Duration(1+r.IntN(1500)) * time.Millisecond
	switch class {
	case "request late":
		return redistest.Delay(d)
	case "request twice":
		return redistest.Duplicate
	case "request lost":
		return redistest.DropBefore
	case "reply lost":
		return redistest.CloseAfterExec
	case "reply never comes":
		return redistest.Silence
	case "reply halved":
		return redistest.HalfReply
	case "reply late":
		ch := make(chan struct{})
		n.timers.Add(1)
		time.AfterFunc(d, func() { close(ch); n.timers.Done() })
		return redistest.HoldReply(ch)
	}
	panic("no fault of the wire is called " + class)
}

// proxyClasses are the faults that meet connections.
var proxyClasses = []string{"connections cut", "connections black-holed", "connections refused"}

// disturb injects a fault of one of the proxyClasses, and mends it.
func (n *network) disturb(class string, r *rand.Rand) {
	p := n.proxies[r.IntN(len(n.proxies))]
	switch class {
	case "connections cut":
		p.Cut()
	case "connections black-holed":
		p.BlackHole()
	case "connections refused":
		p.Refuse(true)
		p.Cut()
		time.Sleep(time.Duration(50+r.IntN(1000)) * time.Millisecond)
		p.Refuse(false)
	}
}
