// What the scripts answer. Each layout is in the head of the Lua file, and here.

package shards

import (
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
)

// sizeIn returns how many shards there are, if that is why join.lua has refused.
func sizeIn(refused *conn.Call) int64 { return refused.Int(3) }

// version is what is known of the table.
type version struct {
	rev     int64 // 0: nothing
	members int64
}

// held is one shard as somebody has it.
type held struct {
	number int
	token  int64
}

// balance is what balance.lua has answered.
type balance struct {
	version
	next  time.Duration // until the first lease of a member is over
	same  bool          // nothing has changed: the rest is not filled in
	has   []held
	asked map[int]bool
}

func balanceIn(call *conn.Call) balance {
	b := balance{
		version: version{rev: call.Int(2), members: call.Int(4)},
		next:    milliseconds(call.Int(3)),
	}
	n := int(call.Int(5))
	if b.same = n < 0; b.same {
		return b
	}
	at := 6
	for range n {
		b.has = append(b.has, held{int(call.Int(at)), call.Int(at + 1)})
		at += 2
	}
	b.asked = make(map[int]bool)
	for ; at < call.Reply.Len(); at++ {
		b.asked[int(call.Int(at))] = true
	}
	return b
}

// look is what look.lua has answered.
type look struct {
	version
	next   time.Duration // until the first lease of a member is over; 0: there is no member
	size   int64         // 0: there is no table
	same   bool          // nothing has changed: the rest is not filled in
	owners []Info        // of those shards that somebody has
}

func lookIn(call *conn.Call) look {
	l := look{
		version: version{rev: call.Int(2), members: call.Int(3)},
		next:    milliseconds(call.Int(4)),
		size:    call.Int(5),
	}
	n := int(call.Int(6))
	if l.same = n < 0; l.same {
		return l
	}
	members := make([]Info, n)
	at := 7
	for i := range members {
		members[i].Identity, members[i].Value = saidIn(call.Text(at))
		members[i].Left = milliseconds(call.Int(at + 1))
		at += 2
	}
	for ; at+2 < call.Reply.Len(); at += 3 {
		if i := int(call.Int(at + 2)); i >= 1 && i <= n {
			info := members[i-1]
			info.Shard, info.Token = int(call.Int(at)), call.Int(at+1)
			l.owners = append(l.owners, info)
		}
	}
	return l
}

// saidIn returns what a member says of itself: "<joined> <weight> <n> <identity><value>".
func saidIn(text string) (identity, value string) {
	parts := strings.SplitN(text, " ", 4)
	if len(parts) < 4 {
		return "", ""
	}
	n, err := strconv.Atoi(parts[2])
	if err != nil || n < 0 || n > len(parts[3]) {
		return "", ""
	}
	return parts[3][:n], parts[3][n:]
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
