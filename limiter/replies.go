// The replies of the scripts. Each layout is in the head of the Lua file, and here.

package limiter

import (
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
)

// tooMany is the status of take.lua if more units were asked for than burst.
const tooMany = 2

// answer is what take.lua has answered.
type answer struct {
	status int64
	debt   time.Duration // for how long from then on the limit is not full
	taken  int64
	units  int64
	rate   rate      // that in force; only rev is known of it if part is true
	part   bool      // it came in a bundle, which leaves out what follows rev
	at     time.Time // when it was heard
}

// answerIn reads the reply of a call that was made with the rate known. If the call went out in a bundle, and
// another rate is in force, the answer is incomplete.
func answerIn(call *conn.Call, known rate) answer {
	a := answer{
		status: call.Status(),
		debt:   time.Duration(call.Int(2)) * time.Microsecond,
		rate:   known,
		at:     time.Now(),
	}
	a.taken, a.units = call.Int(4), call.Int(5)
	if rev := call.Int(3); rev != 0 {
		a.rate = rate{count: call.Int(6), period: call.Int(7), burst: call.Int(8), rev: rev}
		a.part = a.rate.count == 0
	}
	return a
}

// without returns the answer with that status as it was before the last units were taken that it counts.
func (a answer) without(status, units int64) answer {
	a.status = status
	a.debt = max(a.debt-a.rate.of(units), 0) // time may have paid for them
	return a
}

// wait returns how long after the answer its units come.
func (a *answer) wait() time.Duration { return max(a.debt-a.rate.whole(), 0) }

// left returns how many units could be taken at once.
func (a *answer) left() int64 {
	free := float64(a.rate.whole()-a.debt) / float64(time.Microsecond)
	return max(int64(math.Floor((free+1)/a.rate.unit())), 0)
}

// until returns after how long n units could be taken.
func (a *answer) until(n int64) time.Duration {
	return max(a.debt+a.rate.of(n)-a.rate.whole(), 0)
}
