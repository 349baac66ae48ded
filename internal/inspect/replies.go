// The replies of inspect.lua and who.lua. Each layout is in the head of the Lua file, and here.

package inspect

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/lockhash"
	"github.com/holdfast-go/holdfast/internal/pause"
)

// parse returns the answer to a call made by ask, and where the holders go on.
func parse(call *conn.Call, life time.Duration) (s State, cursor string) {
	s = State{
		Kind:      call.Text(2),
		At:        time.UnixMicro(call.ServerTime()),
		Remaining: lasts(call.Int(3)),
		Waiters:   int(call.Int(4)),
		Taken:     int(call.Int(8)),
		State:     call.Text(11),
	}
	s.All, _ = strconv.ParseInt(call.Text(10), 10, 64) // "": not known
	if text := call.Text(7); text != "" {
		value, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			s.Kind = unknown
		}
		s.Value = value
	}
	next := header + 3*int(call.Int(13))
	for i := header; i < min(next, call.Reply.Len()-2); i += 3 {
		h := holder(call, i, s.Remaining)
		switch s.Kind {
		case permits:
			h.Permit = hex.EncodeToString([]byte(h.field))
		case slots:
			h = slot(h, call.Text(i+1))
		case shards:
			h = member(h, call.Text(i+1))
		}
		s.Holders = append(s.Holders, h)
	}
	if h, ok := s.exclusive(); ok && ofHoldfast(h.Owner) {
		s.Since = since(s.At, call.Text(5), call.Int(6), life)
	}
	s.Pause = pause.Parse(call.Text(14))
	if who := call.Text(12); who != "" && len(s.Holders) == 1 {
		s.Holders[0].Said.Who = who
	}
	s.Queue = s.queue(waiters(call, next))
	return s, call.Text(9)
}

// header is how many elements of a reply come before the holders.
const header = 15

func holder(call *conn.Call, i int, remaining time.Duration) Holder {
	id, write := strings.CutSuffix(call.Text(i), ":write")
	h := Holder{field: call.Text(i), Write: write, Remaining: remaining}
	h.Owner, _ = hold.ParseOwner(id)
	h.Count = lockhash.Count(call.Text(i + 1))
	if _, known := call.Reply.Number(i + 2); known {
		h.Remaining = lasts(call.Int(i + 2))
	}
	return h
}

// slot returns the holder of a slot. The text in the reply has its number, and a mark if its lease is
// over.
func slot(h Holder, text string) Holder {
	number, over, _ := strings.Cut(text, " ")
	h.Number, _ = strconv.Atoi(number)
	h.Count, h.Over = 1, over != ""
	return h
}

// member returns a member of shards. The text in the reply has how many it has, which, and what it says that it is.
func member(h Holder, text string) Holder {
	text, h.Said.Who, _ = strings.Cut(text, ",")
	count, which, _ := strings.Cut(text, " ")
	h.Count, _ = strconv.Atoi(count)
	h.Shards = which
	return h
}

func lasts(ms int64) time.Duration {
	switch ms {
	case -1:
		return hold.NoExpiry
	case -2: // it ran out while it was looked at
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

// listed is one that waits, as the reply lists it.
type listed struct {
	owner  hold.Owner
	number int64
	text   string
}

// waiters returns those that wait, from element i of the reply on.
func waiters(call *conn.Call, i int) (all []listed) {
	for ; i+2 < call.Reply.Len(); i += 3 {
		owner, err := hold.ParseOwner(call.Text(i))
		if err != nil {
			continue
		}
		number, _ := strconv.ParseInt(call.Text(i+1), 10, 64)
		all = append(all, listed{owner, number, call.Text(i + 2)})
	}
	return all
}

// saidIn reads what the reply of who.lua says of the i-th owner.
func saidIn(call *conn.Call, i int) Said { return Said{call.Text(2 + 2*i), call.Text(3 + 2*i)} }
