// The claims are what the protocol keeps, and what each of its rules is for.

package model

import (
	"maps"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// one returns the rules for three clients and one server.
func one() rules {
	return rules{clients: 3, members: 1, lease: 2, margin: 1, window: 1}
}

// three returns the rules for two clients and a quorum of three.
func three() rules {
	return rules{clients: 2, members: 3, lease: 2, margin: 1, window: 1, prompt: true, fleeting: true}
}

// queue returns the rules for two clients and one server. A client that is refused waits, and a
// message hands it the lock.
func queue() rules {
	return rules{clients: 2, members: 1, lease: 2, margin: 1, window: 1, asks: 2}
}

// crowd returns the rules of queue for three clients.
func crowd() rules {
	return queue().with(func(r *rules) { r.clients, r.prompt, r.fleeting = 3, true, true })
}

// with returns the rules with a change made to them.
func (r rules) with(change func(r *rules)) rules {
	change(&r)
	return r
}

// exploration explores one model, up to a number of states.
type exploration func(limit int) found

func of(r rules) exploration { return func(limit int) found { return explore[world](&r, limit) } }

// without leaves a rule out.
func (r rules) without(change func(r *rules)) exploration { return of(r.with(change)) }

func ofLine(r lineRules) exploration {
	return func(limit int) found { return explore[lineWorld](&r, limit) }
}

func (r lineRules) leaving(out lineRule) exploration {
	r.without = out
	return ofLine(r)
}

// limit is how many states an exploration has at the most: more than any here, in the long run. The race
// detector has nothing to see here.
func limit() int {
	switch {
	case os.Getenv("HOLDFAST_LONG") == "1":
		return 24_000_000
	case redistest.RaceDetector:
		return 10_000
	}
	return 80_000
}

// long reports whether there is time for long explorations.
func long() bool { return limit() > 1_000_000 }

// The protocol keeps what it promises, whatever happens and in whatever order, also in the line of one
// process. Unless the run is long, the first states alone are visited.
func TestNothingGoesWrong(t *testing.T) {
	bounds := map[string]exploration{
		"one server": of(one()),
		"one server that loses its data: the fence": one().without(func(r *rules) {
			r.crashes, r.overlaps, r.fleeting = 1, true, true
		}),
		"a quorum":         of(three()),
		"a queue":          of(queue()),
		"a queue of three": of(crowd()),

		"a line, every request is answered": ofLine(lineRules{lease: 2}),
	}
	if long() {
		maps.Copy(bounds, map[string]exploration{
			"one server that gets requests twice": one().without(func(r *rules) { r.copies = 1 }),
			"one server, longer leases and late replies": one().without(func(r *rules) {
				r.lease, r.window, r.copies = 3, 2, 1
			}),
			"one server that loses its data under renewals: the fence": one().without(func(r *rules) {
				r.crashes, r.overlaps = 1, true
			}),
			"a queue that gets requests twice":   queue().without(func(r *rules) { r.copies, r.asks = 1, 3 }),
			"a queue of three, longer leases":    crowd().without(func(r *rules) { r.lease = 3 }),
			"a queue of three, and late replies": crowd().without(func(r *rules) { r.prompt = false }),
			"a queue of three, and renewals":     crowd().without(func(r *rules) { r.fleeting = false }),
			"a queue of three in a server that loses its data: the fence": crowd().without(func(r *rules) {
				r.crashes, r.overlaps = 1, true
			}),
			"a quorum, and a member that loses its data": three().without(func(r *rules) { r.crashes = 1 }),

			"a line, a request is not answered":     ofLine(lineRules{lease: 2, unheard: 1}),
			"a line, a request is late":             ofLine(lineRules{lease: 2, unheard: 1, late: 1}),
			"a line, two requests are not answered": ofLine(lineRules{lease: 2, unheard: 2}),
			// The lock may be handed to a place that its waiter has just given up.
			"a line, two requests, one of them late": ofLine(lineRules{lease: 2, unheard: 2, late: 1, ghosts: true}),
		})
	}
	for name, explore := range bounds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			f := explore(limit())
			t.Logf("%d states in %.1f s", f.states, time.Since(began).Seconds())
			if f.wrong != "" && (f.wrong != more || long()) {
				t.Fatalf("%s:\n%s", f.wrong, f.trace)
			}
		})
	}
}

// If any one of its rules is left out, the protocol does not keep what it promises. The rules of a line have the
// names of the same bugs as planted in the code, if there are such: see package planted.
func TestEachRuleIsNeeded(t *testing.T) {
	const (
		overlap = "two are inside"
		stale   = "the resource has taken a write of a holder that has been overtaken"
		placed  = "a place is kept for a client whose clean-up is over"
		leaked  = "a server holds the lock for a client whose clean-up is over"

		older  = "a token does not grow"
		astray = "the seat is lost"
		kept   = "a place is kept for nobody"
		ghost  = "the lock is kept for nobody"
	)
	unheard, late := lineRules{lease: 2, unheard: 2}, lineRules{lease: 2, unheard: 1, late: 1}
	both := lineRules{lease: 2, unheard: 2, late: 1, ghosts: true}
	for name, test := range map[string]struct {
		of    exploration
		wrong string
		far   bool // more states than limit allows in a short run
	}{
		"no fence":                             {one().without(func(r *rules) { r.noFence = true }), stale, false},
		"the deadline counts from the reply":   {one().without(func(r *rules) { r.fromReply = true }), overlap, false},
		"no look at the deadline at the grant": {one().without(func(r *rules) { r.noRecheck = true }), overlap, false},
		"no margin for clocks that drift":      {one().without(func(r *rules) { r.noMargin = true }), overlap, false},
		"no not-after":                         {one().without(func(r *rules) { r.noNotAfter = true }), leaked, false},
		"a clean-up that ends too early":       {one().without(func(r *rules) { r.noSettling = true }), leaked, false},
		"a release by whoever sends one":       {one().without(func(r *rules) { r.noOwner = true }), overlap, false},
		"tokens that are counted, and data lost": {one().without(func(r *rules) {
			r.counted, r.crashes, r.overlaps = true, 1, true
		}), stale, false},
		"data lost, and no promise of overlaps given up": {one().without(func(r *rules) { r.crashes = 1 }), overlap, false},

		"a quorum of less than a majority":        {three().without(func(r *rules) { r.smallQuorum = true }), overlap, false},
		"a quorum, no fence":                      {three().without(func(r *rules) { r.noFence = true }), stale, false},
		"a quorum, its token not written back":    {three().without(func(r *rules) { r.noWriteBack = true }), stale, false},
		"an empty member that counts at once":     {three().without(func(r *rules) { r.noQuarantine, r.crashes = true, 1 }), overlap, false},
		"an empty member, its clock far behind":   {three().without(func(r *rules) { r.clocksApart, r.crashes = true, 1 }), stale, true},
		"an empty member, and tokens are counted": {three().without(func(r *rules) { r.counted, r.crashes = true, 1 }), stale, true},

		"a queue, the deadline counts from the message":   {crowd().without(func(r *rules) { r.fromMessage = true }), overlap, false},
		"a queue, it counts from an unanswered question":  {crowd().without(func(r *rules) { r.fromUnheard = true }), overlap, false},
		"a queue, no look at the deadline":                {crowd().without(func(r *rules) { r.noRecheck = true }), overlap, false},
		"a queue, a message to another owner":             {crowd().without(func(r *rules) { r.anyOwner = true }), overlap, false},
		"a queue, a message to who never heard an answer": {crowd().without(func(r *rules) { r.noDoubt = true }), overlap, false},
		"a queue, a message from before a place was lost": {crowd().without(func(r *rules) { r.oldMessage = true }), overlap, false},
		"a queue, a clean-up that ends too early":         {queue().without(func(r *rules) { r.hasty = true }), placed, false},

		"a waiter that takes over its process's place forgets the doubt about it": {unheard.leaving(staysInDoubt), older, true},
		"a message is believed after an unheard request":                          {unheard.leaving(doubtsUnheard), astray, false},
		"a seat without a number is not in doubt":                                 {unheard.leaving(doubtsUnknown), older, false},
		"a message is believed after the place was lost":                          {unheard.leaving(doubtsLost), older, false},
		"a message is believed long after the place was kept":                     {both.leaving(keptLately), older, true},
		"a head in doubt leaves the seat to the next":                             {unheard.leaving(leavesInDoubt), astray, false},
		"a release keeps the seat that was given up meanwhile":                    {unheard.leaving(dropsJoining), ghost, false},
		"a seat that an unheard request may have taken counts whole":              {unheard.leaving(agesUnheard), astray, false},
		"the clean-up ends before the late request":                               {late.leaving(cleansUpLong), kept, false},
		"a late grant leaves the next owner of its process in the queue":          {late.leaving(cleansUpNext), ghost, false},
		"a place that the line has is given up with a late grant":                 {late.leaving(sparesWaiters), astray, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.far && !long() {
				t.Skip("too far to go: HOLDFAST_LONG=1 does")
			}
			f := test.of(limit())
			if f.wrong == more && redistest.RaceDetector {
				t.Skip("too far to go with the race detector, which has nothing to see here")
			}
			if f.wrong != test.wrong {
				t.Fatalf("after %d states: %q, want %q\n%s", f.states, f.wrong, test.wrong, f.trace)
			}
			t.Logf("after %d states: %s\n%s", f.states, f.wrong, f.trace)
		})
	}
}
