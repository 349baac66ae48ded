// The wire between contenders and servers: the proxies, and faults that affect one command
// each.

package main

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// wireClasses are the faults that affect one command on its way. The command is a script,
// unless the class says otherwise.
var wireClasses = []string{
	"request late", "request twice", "request lost", "reply lost", "reply never comes", "reply late", "reply halved",
}

// subscriptionClasses are the faults that affect SUBSCRIBE, on topologies where contenders
// subscribe.
var subscriptionClasses = []string{"subscription lost", "subscription unanswered"}

// waitClasses are the faults that affect WAIT, on topologies where replicas have to confirm.
var waitClasses = []string{"confirmation lost", "confirmation late"}

// commandsOf returns the commands that a class affects.
func commandsOf(class string) []string {
	switch subject, _, _ := strings.Cut(class, " "); subject {
	case "subscription":
		return []string{"SUBSCRIBE", "SSUBSCRIBE"}
	case "confirmation":
		return []string{"WAIT"}
	}
	return []string{"EVALSHA", "EVAL"}
}

// network is a proxy in front of each server.
type network struct {
	t       testing.TB
	proxies []*redistest.FaultProxy
	routes  map[string]string
	timers  sync.WaitGroup

	mu     sync.Mutex
	armed  []armed
	locked bool // credentials are refused
}

// armed is a fault that waits for a command that it can affect.
type armed struct {
	class string
	fault redistest.Fault
	met   func()
}

// newNetwork puts a proxy in front of each server. ways set how contenders reach the proxies.
func newNetwork(t testing.TB, ways []redistest.Way, servers ...*redistest.Proc) *network {
	n := &network{t: t, routes: map[string]string{}}
	for _, s := range servers {
		p := redistest.Proxy(t, s.Addr(), ways...)
		p.OnCommand(n.meet)
		n.proxies = append(n.proxies, p)
		n.routes[s.Addr()] = p.Addr()
	}
	t.Cleanup(n.timers.Wait)
	return n
}

// meet gives a command the first armed fault that can affect it.
func (n *network) meet(c redistest.Command) redistest.Fault {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.locked && (c.Name == "AUTH" || c.Name == "HELLO") {
		return redistest.ReplyError("WRONGPASS invalid username-password pair or user is disabled.")
	}
	i := slices.IndexFunc(n.armed, func(a armed) bool { return slices.Contains(commandsOf(a.class), c.Name) })
	if i < 0 {
		return redistest.Pass
	}
	a := n.armed[i]
	n.armed = slices.Delete(n.armed, i, i+1)
	a.met()
	return a.fault
}

// arm gives a fault of that class to the next command that it can affect, unless a fault of the
// class is armed already. met is called when the command comes.
func (n *network) arm(class string, r *rand.Rand, met func()) {
	a := armed{class: class, fault: n.fault(class, r), met: met}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.ContainsFunc(n.armed, func(b armed) bool { return b.class == class }) {
		n.armed = append(n.armed, a)
	}
}

func (n *network) fault(class string, r *rand.Rand) redistest.Fault {
	d := time.Duration(1+r.IntN(1500)) * time.Millisecond
	switch class {
	case "request late":
		return redistest.Delay(d)
	case "request twice":
		return redistest.Duplicate
	case "request lost", "subscription lost":
		return redistest.DropBefore
	case "reply lost", "confirmation lost":
		return redistest.CloseAfterExec
	case "reply never comes", "subscription unanswered":
		return redistest.Silence
	case "reply halved":
		return redistest.HalfReply
	case "reply late", "confirmation late":
		ch := make(chan struct{})
		n.timers.Add(1)
		time.AfterFunc(d, func() { close(ch); n.timers.Done() })
		return redistest.HoldReply(ch)
	}
	panic("no fault of the wire is called " + class)
}

// proxyClasses are the faults of connections.
var proxyClasses = []string{
	"connections cut", "connections black-holed", "replies trickle",
	"connections refused", "connections mute", "connections reset", "handshakes cut", "too many clients", "credentials refused",
}

// doors are the classes that cut connections and keep new ones from being made.
var doors = map[string]redistest.Door{
	"connections mute": redistest.Mute, "connections reset": redistest.Slam,
	"handshakes cut": redistest.Change, "too many clients": redistest.Full,
}

// disturb injects a fault of one of the proxyClasses, and ends it.
func (n *network) disturb(class string, r *rand.Rand) {
	p := n.proxies[r.IntN(len(n.proxies))]
	outage := 50*time.Millisecond + time.Duration(r.Int64N(int64(time.Second)))
	switch class {
	case "connections cut":
		p.Cut()
	case "connections black-holed":
		p.BlackHole()
	case "replies trickle":
		p.Trickle(true)
		time.Sleep(outage)
		p.Trickle(false)
	case "connections refused":
		p.Refuse(true)
		p.Cut()
		time.Sleep(outage)
		p.Refuse(false)
	case "credentials refused":
		n.lock(true)
		p.Cut()
		time.Sleep(outage)
		n.lock(false)
	default:
		p.Receive(doors[class])
		p.Cut()
		time.Sleep(outage)
		p.Receive(redistest.Open)
		p.Cut()
	}
}

// lock makes the proxies refuse credentials, or accept them again.
func (n *network) lock(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.locked = on
}
