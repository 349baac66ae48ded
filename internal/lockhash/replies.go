// What the scripts of a lock and its queue answer, and what their messages say. Each layout is in the head of the
// Lua file that makes it, and here. A message of any other form hands nothing over: a later version may send one. The
// command line counts hand-overs by their form: internal/inspect/hear.go.

package lockhash

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/line"
)

// Entered implements hold.Queueing. It reads the reply of enter.lua.
func (q *Queue) Entered(call *conn.Call) (e hold.Entered) {
	const firstNudge = 6
	if call.Status() == conn.Done {
		e.Reserved, e.NextSeq = call.Int(4), call.Int(5)
	} else {
		e.Seq = call.Int(3)
	}
	for i := firstNudge; i < call.Reply.Len(); i++ {
		e.Nudge = append(e.Nudge, call.Text(i))
	}
	return e
}

// Named implements hold.Naming. A refusal by enter.lua names the holder in words, one by lock.lua in
// numbers, and one in a bundle has no room for that.
func (q *Queue) Named(refused *conn.Reply) (holder hold.Owner, token int64) {
	if refused.Values != nil {
		holder, _ = hold.ParseOwner(refused.Text(4))
		token, _ = strconv.ParseInt(refused.Text(5), 10, 64)
		return holder, token
	}
	n := refused.Numbers
	if len(n) < 8 {
		return hold.Owner{}, 0
	}
	id := fmt.Sprintf("%012x%08x%012x:%d", n[4], n[5], n[6], n[7])
	holder, _ = hold.ParseOwner(id[:8] + "-" + id[8:12] + "-" + id[12:16] + "-" + id[16:20] + "-" + id[20:])
	return holder, n[3]
}

// Looked implements hold.Looking. It reads the reply of look.lua.
func (q *Queue) Looked(call *conn.Call) hold.Looked {
	mark := hold.Mark(call.Int(3))
	if mark == 0 {
		mark = otherForm
	}
	return hold.Looked{Held: line.HeldByTTL(engine.TTL(call)), Holder: mark}
}

// otherForm is the mark of every holder whose id is not a Client's.
const otherForm hold.Mark = -1

// Mark implements hold.Looking. It returns the mark by which look.lua distinguishes that owner from
// others.
func (q *Queue) Mark(owner hold.Owner) hold.Mark {
	id, number, _ := strings.Cut(owner.String(), ":")
	client, err := strconv.ParseInt(id[:min(8, len(id))], 16, 64)
	n, err2 := strconv.ParseInt(number, 10, 64)
	if err != nil || err2 != nil || n < 0 {
		return otherForm
	}
	return hold.Mark(client<<20 | n%(1<<20))
}

// Awaited implements hold.Queueing. It reads the reply of free.lua.
func (q *Queue) Awaited(call *conn.Call) bool {
	heard := call.Int(2) == 1 // a subscriber got the message
	return heard || call.Status() == conn.Awaited
}

// claimed reads the reply of claim.lua: when the claimant came, and whether it is the newest.
func claimed(call *conn.Call) (came int64, newest bool) {
	if call.Status() != conn.Done {
		return 0, false
	}
	return call.Int(2), true
}

// renewed is the usual answer of renew.lua in full.
func renewed(c *conn.Call, now int64) [conn.BundleWidth]int64 {
	lease := c.Args[1].(int64)
	return [...]int64{conn.Done, now, lease, 0}
}

// freed is the usual answer of free.lua in full.
func freed(*conn.Call, int64) [conn.BundleWidth]int64 { return [...]int64{conn.Done, 0, 0, 0} }

// Released implements hold.Queueing. It reads the reply of release.lua.
func (q *Queue) Released(call *conn.Call) hold.Released {
	const open, toAnother = 1, 2
	r := hold.Released{Seq: call.Int(2)}
	switch call.Int(3) {
	case open:
		r.Left = hold.LeftOpen
	case toAnother:
		r.Left = hold.LeftToAnother
	}
	return r
}

// HandOver implements line.Told. It reads the message by which release.lua hands the lock over: the
// number of the owner, its token, and for how many ms more its place was kept.
func (q *Queue) HandOver(message string) line.HandOver {
	var numbers [3]int64
	for i := range numbers {
		word, rest, more := strings.Cut(message, " ")
		var err error
		if numbers[i], err = strconv.ParseInt(word, 10, 64); err != nil || more == (i == 2) {
			return line.HandOver{}
		}
		message = rest
	}
	return line.HandOver{Owner: numbers[0], Token: numbers[1], Left: time.Duration(numbers[2]) * time.Millisecond}
}

// ParseState reads the reply of state.lua, to a call that State made.
func ParseState(call *conn.Call) State {
	var s State
	const nobody = -2 * time.Millisecond
	if engine.TTL(call) == nobody {
		return s
	}
	s.Locked, s.Remaining = true, hold.Remaining(engine.TTL(call))
	for i := 3; i+1 < call.Reply.Len(); i += 2 {
		s.Holders = append(s.Holders, Holder{ID: call.Text(i), Count: Count(call.Text(i + 1))})
	}
	return s
}
