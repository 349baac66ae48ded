// Renewals of many by one call.

package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/renewal"
)

// Part is what a task brings to a renewal of many.
//
// The script takes as keys those of the tasks, as ARGV[2] the length in ms, as ARGV[3]
// the Client, and then the number of each owner. It answers renewed, the time, and for
// each key whose time to live is not the length, in their order, which it is, counted
// from 1, and a number: the time to live in ms, -1 for one without end, notHeld, or less
// than that if it takes a renewal of this one by itself to know.
type Part struct {
	Script *conn.Script
	Owner  int64         // the number of the owner, who is one of this Client's
	Length time.Duration // to which it is renewed; 0: it is only looked at
	Until  time.Time     // the local instant after which it may take no effect
}

// Statuses of the scripts that renew, and what those that renew many say of one.
const (
	renewed = 1
	notHeld = -2
)

// group is tasks that one call can renew: by one script, to one length, and with
// keys that may stand in one call.
type group []member

type member struct {
	Part
	task  Renewable
	place int // of its key: see conn.Manager.Place
}

// room is where the groups of one batch and their calls are built. It is used again
// for another batch: what each lease took anew would be most of the garbage of a process
// that holds very many.
type room struct {
	members group
	keys    []string
	args    []any
	// read says that a connection may still read from here: a request was left behind
	// when its time was over. Then this is not used again.
	read bool
}

// clear makes room for another batch.
func (r *room) clear() {
	clear(r.members)
	clear(r.keys)
	clear(r.args)
	r.members, r.keys, r.args = r.members[:0], r.keys[:0], r.args[:0]
}

// divide returns the groups among the tasks, and those that are renewed by
// themselves. A call for one costs less than a call for many with one key.
func (r *room) divide(batch []renewal.Task, place func(key string) int) (groups []group, alone []Renewable) {
	members, mixed := r.members, false
	for _, t := range batch {
		task := t.(Renewable)
		part := task.Part()
		if part.Script == nil {
			alone = append(alone, task)
			continue
		}
		members = append(members, member{part, task, place(task.Key())})
		mixed = mixed || !members[0].suits(&members[len(members)-1])
	}
	r.members = members
	if mixed {
		slices.SortFunc(members, order)
	}
	for len(members) > 0 {
		n := 1
		for n < len(members) && members[0].suits(&members[n]) {
			n++
		}
		if n == 1 {
			alone = append(alone, members[0].task)
		} else {
			groups = append(groups, members[:n])
		}
		members = members[n:]
	}
	return groups, alone
}

// suits reports whether both can be in one group.
func (m *member) suits(other *member) bool {
	return m.Script == other.Script && m.place == other.place && m.Length == other.Length
}

// order has those stand together that suit each other.
func order(a, b member) int {
	return cmp.Or(
		cmp.Compare(a.Script.Name(), b.Script.Name()),
		cmp.Compare(a.place, b.place),
		cmp.Compare(a.Length, b.Length))
}

// call returns the call that renews the group, whose owners are the client's. It takes
// effect until the first of the leases ends, at the latest: later it would revive what
// was given up.
func (r *room) call(g group, client *string) *conn.Call {
	call := &conn.Call{Script: g[0].Script, Until: g[0].Until, AnyTime: true}
	keys, args := len(r.keys), len(r.args)
	r.args = append(r.args, g[0].Length.Milliseconds(), client)
	for i := range g {
		m := &g[i]
		r.keys = append(r.keys, m.task.Key())
		r.args = append(r.args, &m.Owner)
		if m.Until.Before(call.Until) {
			call.Until = m.Until
		}
	}
	call.Keys, call.Args = r.keys[keys:], r.args[args:]
	return call
}

// answer tells each task what became of it. It returns those of which that is not
// known, though the server answers: they are to be renewed by themselves.
func (g group) answer(call *conn.Call, err error) (alone []Renewable) {
	if err != nil && !conn.Answered(err) {
		for _, m := range g {
			m.task.Renewed(Renewed{Err: err})
		}
		return nil
	}
	told := err == nil && call.Status() == renewed && g.understands(call)
	next := 2 // in the reply: what it tells of single ones
	for i := range g {
		task, ttl := g[i].task, g[i].Length.Milliseconds()
		if told && call.Int(next) == int64(i+1) {
			ttl = call.Int(next + 1)
			next += 2
		}
		if !told || ttl < notHeld {
			alone = append(alone, task)
			continue
		}
		task.Renewed(Renewed{
			Held: ttl != notHeld,
			TTL:  time.Duration(ttl) * time.Millisecond,
			Sent: call.Sent,
		})
	}
	return alone
}

// understands reports whether what the answer tells of single ones is numbers of
// members, in their order, each with what is told of it.
func (g group) understands(call *conn.Call) bool {
	last, i := int64(0), 2
	for ; i+1 < call.Reply.Len(); i += 2 {
		n := call.Int(i)
		if n <= last || n > int64(len(g)) {
			return false
		}
		last = n
	}
	return i == call.Reply.Len()
}
