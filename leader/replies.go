// The replies of the scripts. Each layout is in the head of the Lua file, and here.

package leader

import (
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/hold"
	pauses "github.com/holdfast-go/holdfast/internal/pause"
	"github.com/holdfast-go/holdfast/lease"
)

// toldIn reads the reply of tell.lua: since when the owner leads, in microseconds of the server's
// clock, and who asks it to resign; "" if nobody does.
func toldIn(call *conn.Call) (since int64, asked string) {
	since, _ = strconv.ParseInt(call.Text(2), 10, 64)
	return since, call.Text(3)
}

// paused is the status of tell.lua where nobody may lead.
const paused = 2

// pausedIn reads a reply of that status: by whom, until when and why.
func pausedIn(call *conn.Call) error { return pauses.Parse(call.Text(2)).Err() }

// infoIn reads the reply of look.lua.
func infoIn(call *conn.Call) Info {
	if call.Status() != conn.Done {
		return Info{}
	}
	i := Info{Identity: call.Text(6), Value: call.Text(7), Left: hold.Remaining(engine.TTL(call))}
	i.Token, _ = strconv.ParseInt(call.Text(3), 10, 64)
	i.Priority, _ = strconv.Atoi(call.Text(5))
	since, _ := strconv.ParseInt(call.Text(4), 10, 64)
	i.Since = time.UnixMicro(since)
	return i
}

// addCandidates adds to all those in the reply of candidates.lua. It returns where the next call goes
// on; "" if there are no more.
func addCandidates(all []Candidate, call *conn.Call) (more []Candidate, next string, err error) {
	for i := 3; i+1 < call.Reply.Len(); i += 2 {
		owner, err := lease.ParseOwner(call.Text(i))
		if err != nil {
			return nil, "", err
		}
		priority, identity, _ := strings.Cut(call.Text(i+1), " ")
		c := Candidate{Owner: owner, Identity: identity}
		c.Priority, _ = strconv.Atoi(priority)
		all = append(all, c)
	}
	return all, call.Text(2), nil
}
