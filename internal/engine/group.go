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
// The script takes as keys those of the tasks, as ARGV[2] the length in ms, and then
// the holder of each. It answers renewed, the time, and a number for each key: the
// time to live in ms, -1 for one without end, notHeld, or less than that if it takes
// a renewal of this one by itself to know.
type Part struct {
	Script *conn.Script
	Holder string
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

// divide returns the groups among the tasks, and those that are renewed by
// themselves. A call for one costs less than a call for many with one key.
func divide(batch []renewal.Task, place func(key string) int) (groups []group, alone []Renewable) {
	members := make(group, 0, len(batch))
	mixed := false
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

// call returns the call that renews the group. It takes effect until the first of
// the leases ends, at the latest: later it would revive what was given up.
func (g group) call() *conn.Call {
	call := &conn.Call{
		Script:  g[0].Script,
		Keys:    make([]string, len(g)),
		Args:    make([]any, 1, 1+len(g)),
		Until:   g[0].Until,
		AnyTime: true,
	}
	call.Args[0] = g[0].Length.Milliseconds()
	for i := range g {
		m := &g[i]
		call.Keys[i] = m.task.Key()
		call.Args = append(call.Args, &m.Holder)
		if m.Until.Before(call.Until) {
			call.Until = m.Until
		}
	}
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
	whole := err == nil && call.Status() == renewed && len(call.Reply) == 2+len(g)
	for i := range g {
		task, ttl, known := g[i].task, int64(0), false
		if whole {
			ttl, known = call.Reply[2+i].(int64)
		}
		if !known || ttl < notHeld {
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
