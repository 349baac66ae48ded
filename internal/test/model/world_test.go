// A world is one state of the model.

package model

import (
	"bytes"
	"hash/fnv"
	"slices"
	"unsafe"
)

// rules say what is explored: how many clients and members there are, what may happen, and which
// rules of the protocol are left out.
type rules struct {
	clients int
	members int // servers: 1, or a quorum of 3
	lease   int // in ticks
	margin  int // for clocks that drift; a client's clock loses at most one tick in a lease
	window  int // for how long a request may be executed after it was sent

	copies   int  // how many requests the network may repeat
	crashes  int  // how often a server may come back empty
	prompt   bool // a reply is heard at once or never; this makes fewer states
	fleeting bool // nobody renews; this makes fewer states
	asks     int  // how often a client may ask that waits in a queue; 0: there is no queue

	// These are not promised, or are promised on a condition that does not hold.
	overlaps    bool // there may be overlaps: only the fence is promised
	clocksApart bool // servers' clocks differ by more than the longest lease

	// These are rules that are left out.
	noFence      bool // the resource takes every write
	fromReply    bool // the deadline counts from the reply
	noRecheck    bool // a grant is taken without a look at its deadline
	noNotAfter   bool // a request may be executed at any time
	noSettling   bool // the clean-up ends with its first answer
	noOwner      bool // a release takes the lock from any holder
	noMargin     bool // nothing is set aside for clocks that drift
	noQuarantine bool // a member that has lost its data counts at once
	noWriteBack  bool // the token of a quorum stays with the members that gave it
	counted      bool // tokens are counted, and start again when the data is lost
	smallQuorum  bool // one member less than a majority is enough

	// These are rules of the queue that are left out.
	fromMessage bool // when the lock is handed to a client, its deadline counts from the message
	fromUnheard bool // that deadline counts from a question that was not answered
	anyOwner    bool // a client believes a message to another owner
	noDoubt     bool // a client believes a message although it has never heard an answer
	oldMessage  bool // a client believes a message although it had lost its place meanwhile
	hasty       bool // the clean-up of a client that has waited ends with its first answer
}

// quorum returns how many members must grant.
func (r *rules) quorum() int {
	if r.smallQuorum {
		return r.members / 2
	}
	return r.members/2 + 1
}

// valid returns for how long a client relies on a grant that it asked for just now.
func (r *rules) valid() int8 {
	if r.noMargin {
		return int8(r.lease)
	}
	return int8(r.lease - r.margin)
}

const (
	maxClients = 3
	maxMembers = 3
)

// world is one state. Two states are equal if everything that can follow is the same.
type world struct {
	clients [maxClients]client
	members [maxMembers]member

	fence  int8 // the greatest token that the resource has seen
	newest int8 // the order of the latest holder among the writes that the resource took
	orders int8 // how many grants there were

	copies  int8 // how many requests may still be repeated
	crashes int8 // how often a server may still lose its data
}

// phase says what a client is doing. A client comes in only once.
type phase int8

const (
	idle phase = iota
	asking
	inside
	leaving // released, lost or given up: the client cleans up
)

type client struct {
	phase  phase
	paused bool // the client is inside and stands still: it cannot be told
	write  bool // one of its writes is on its way to the resource
	token  int8
	order  int8 // the order of its grant among all grants; nothing in the model knows it
	asked  int8 // how often the client has asked, if it may wait
	links  [maxMembers]link
}

// These are the requests and the answers.
const (
	nothing int8 = iota
	acquire
	renew
)

const (
	granted int8 = iota + 1
	refused
	displaced // refused, and the place that the client had was lost
)

// link is the state between one client and one member.
type link struct {
	request  int8 // the request that is on its way to the member
	notAfter int8 // for how long the request may still be executed
	reply    int8 // the reply that is on its way back
	token    int8 // the token in the reply, and after the reply
	order    int8 // the order of that grant, if there is a queue
	left     int8 // what is left of the lease that was asked for, counted from the sending
	slow     bool // the client's clock has lost a tick since then
	granted  bool // this member has granted the client the lock
	valid    int8 // for how long the client may rely on that grant
	aged     bool // slow, for valid
	settled  bool // the clean-up is over
	holds    bool // the member says that this client holds the lock
	waiting
}

type member struct {
	ttl        int8 // of the lock
	token      int8 // the last token that was given or written back
	clock      int8 // the token by the server's clock, which no data loss sets back
	quarantine int8 // for how long the member is kept out
}

// begin returns the world in which nothing has happened. The clocks of the members differ.
func (r *rules) begin() world {
	w := world{copies: int8(r.copies), crashes: int8(r.crashes)}
	if r.members > 1 {
		w.members[0].clock = 3
	}
	return w
}

// holder returns the client that holds the member's lock, or -1 for none.
func (w *world) holder(m int) int {
	return slices.IndexFunc(w.clients[:], func(c client) bool { return c.links[m].holds })
}

// backing counts the members on which the client may rely.
func (c *client) backing() (n int) {
	for _, l := range c.links {
		if l.granted && l.valid > 0 {
			n++
		}
	}
	return n
}

// grants counts the members that have granted the lock, whether that grant is over or not.
func (c *client) grants() (n int) {
	for _, l := range c.links {
		if l.granted {
			n++
		}
	}
	return n
}

// alike returns the world without what makes no difference any more, and with its members and
// clients in a fixed order. All members are alike, and so are all clients, so the same can follow
// in any order.
func (r *rules) alike(w world) world {
	all := w.clients[:r.clients]
	for c := range all {
		all[c].forget(r)
	}
	for i := 1; i < r.members; i++ {
		for k := i; k > 0 && w.weight(k) < w.weight(k-1); k-- {
			w.members[k], w.members[k-1] = w.members[k-1], w.members[k]
			for c := range all {
				links := &all[c].links
				links[k], links[k-1] = links[k-1], links[k]
			}
		}
	}
	for i := 1; i < len(all); i++ {
		for k := i; k > 0 && bytes.Compare(raw(&all[k]), raw(&all[k-1])) < 0; k-- {
			all[k], all[k-1] = all[k-1], all[k]
		}
	}
	return w
}

// weight returns a number by which the members are put in order. The number does not depend on the
// order of the clients.
func (w *world) weight(m int) uint64 {
	weight := sum(&w.members[m])
	for c := range w.clients {
		weight += sum(&w.clients[c].links[m])
	}
	return weight
}

// raw returns the memory of what is made of small numbers only.
func raw[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }

// sum is a hash of it.
func sum[T any](v *T) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(raw(v))
	return h.Sum64()
}

// forget drops what no step asks about a client that has left.
func (c *client) forget(r *rules) {
	for m := range c.links {
		c.links[m].dull(c, r)
	}
	if c.phase != leaving {
		return
	}
	c.asked = 0
	if !c.write {
		c.token, c.order = 0, 0
	}
	for m := range c.links {
		c.links[m].token, c.links[m].order = 0, 0
	}
}
