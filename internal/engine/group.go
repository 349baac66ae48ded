// Renewals of many tasks by one call.

package engine

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/renewal"
)

// Part is what a task brings to a renewal of many.
//
// The script's keys are the tasks' keys. ARGV[2] is the length in ms, and the rest are the owners, in
// the order of the keys. The script answers conn.Done and
// the time. Then follow two numbers for each key whose time to live is not the length, in the order
// of the keys. The first is the index of the key, counted from 1. The second is its time to live in
// ms; -1 if it has no end; notHeld; or less than notHeld if only a renewal of this task alone
// can tell.
type Part struct {
	Script *conn.Script
	Owner  int64         // the owner's number; the owner is one of this Client's
	Length time.Duration // what the time to live is renewed to; 0: it is only looked at
	Until  time.Time     // the local instant after which the renewal must take no effect
}

// notHeld is the number that a script that renews many returns for a key that is not held.
const notHeld = -2

// group is a set of tasks that one call can renew: by one script, to one length, and with keys that
// one call may have.
type group []item

// maxGroup bounds the size of a group. A server serves other clients between two calls, and a script
// that renews this many takes some 0.2 ms.
const maxGroup = 100

type item struct {
	Part
	task Renewable
	slot int // the key's: see conn.Manager.Slot
}

// scratch is where the groups of one batch and their calls are built. It is used again for the next
// batch. If this memory were allocated anew for each lease, it would be most of the garbage of a
// process that holds very many leases.
type scratch struct {
	members group
	keys    []string
	owners  []string
	text    []byte // of the owners of a group
	args    []any
	// read says that a connection may still read from here, because the caller has left a request
	// whose time was over. Then the scratch is not used again.
	read bool
}

func (r *scratch) clear() {
	clear(r.members)
	clear(r.keys)
	clear(r.owners)
	clear(r.args)
	r.members, r.keys, r.owners, r.args = r.members[:0], r.keys[:0], r.owners[:0], r.args[:0]
}

// divide returns the groups among the tasks, and the tasks that are renewed alone. A call
// for one task costs less than a call for many with one key.
func (r *scratch) divide(batch []renewal.Task, slot func(key string) int) (groups []group, alone []Renewable) {
	members, mixed := r.members, false
	for _, t := range batch {
		task := t.(Renewable)
		part := task.Part()
		if part.Script == nil {
			alone = append(alone, task)
			continue
		}
		members = append(members, item{part, task, slot(task.Key())})
		mixed = mixed || !members[0].suits(&members[len(members)-1])
	}
	r.members = members
	if mixed {
		slices.SortFunc(members, order)
	}
	for len(members) > 0 {
		n := 1
		for n < min(len(members), maxGroup) && members[0].suits(&members[n]) {
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

// suits reports whether both members can be in one group.
func (m *item) suits(other *item) bool {
	return m.Script == other.Script && m.slot == other.slot && m.Length == other.Length
}

// order sorts members so that those of one group are next to each other.
func order(a, b item) int {
	return cmp.Or(
		cmp.Compare(a.Script.Name(), b.Script.Name()),
		cmp.Compare(a.slot, b.slot),
		cmp.Compare(a.Length, b.Length))
}

// call returns the call that renews the group, whose owners all belong to client. The call takes no
// effect after the earliest deadline in the group: it would revive a hold that was given up.
func (r *scratch) call(g group, client string) *conn.Call {
	call := &conn.Call{Script: g[0].Script, Until: g[0].Until, AnyTime: true}
	keys, args := len(r.keys), len(r.args)
	r.args = append(r.args, g[0].Length.Milliseconds())
	r.addOwners(g, client)
	for i := range g {
		m := &g[i]
		r.keys = append(r.keys, m.task.Key())
		if m.Until.Before(call.Until) {
			call.Until = m.Until
		}
	}
	call.Keys, call.Args = r.keys[keys:], r.args[args:]
	return call
}

// addOwners adds the owners of the group to the arguments. Each goes whole, because to put it together costs a
// server more than to read it. All of them are parts of one text, so that they are one allocation.
func (r *scratch) addOwners(g group, client string) {
	var ends [maxGroup]int
	r.text = r.text[:0]
	for i := range g {
		r.text = append(append(r.text, client...), ':')
		r.text = strconv.AppendInt(r.text, g[i].Owner, 10)
		ends[i] = len(r.text)
	}
	all, from := string(r.text), 0
	for _, end := range ends[:len(g)] {
		r.owners = append(r.owners, all[from:end])
		r.args = append(r.args, &r.owners[len(r.owners)-1])
		from = end
	}
}

// answer gives each task the outcome of its renewal. It returns the tasks whose outcome is not
// known although the server answers: they must be renewed alone.
func (g group) answer(call *conn.Call, err error) (alone []Renewable) {
	if err != nil && !conn.Answered(err) {
		for _, m := range g {
			m.task.Renewed(Renewed{Err: err})
		}
		return nil
	}
	others, told := exceptionsIn(call, len(g))
	told = told && err == nil && call.Status() == conn.Done
	for i := range g {
		task, ttl := g[i].task, g[i].Length.Milliseconds()
		if told {
			ttl = others.next(i, ttl)
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
