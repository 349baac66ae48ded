// The claims are what the protocol keeps, and what each of its rules is for.

package model

import (
	"os"
	"testing"
	"time"
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

// long reports whether there is time for long explorations.
func long() bool { return os.Getenv("HOLDFAST_LONG") == "1" }

// limit is greater than the number of states of any exploration here.
const limit = 4_000_000

// The protocol keeps what it promises, whatever happens and in whatever order.
func TestNothingGoesWrong(t *testing.T) {
	bounds := map[string]rules{
		"one server": one(),
		"one server that loses its data: the fence": one().with(func(r *rules) {
			r.crashes, r.overlaps, r.fleeting = 1, true, true
		}),
		"a quorum":         three(),
		"a queue":          queue(),
		"a queue of three": crowd(),
	}
	if long() {
		bounds["one server that gets requests twice"] = one().with(func(r *rules) { r.copies = 1 })
		bounds["one server, longer leases and late replies"] = one().with(func(r *rules) {
			r.lease, r.window, r.copies = 3, 2, 1
		})
		bounds["one server that loses its data under renewals: the fence"] = one().with(func(r *rules) {
			r.crashes, r.overlaps = 1, true
		})
		bounds["a queue that gets requests twice"] = queue().with(func(r *rules) { r.copies, r.asks = 1, 3 })
		bounds["a queue of three, longer leases"] = crowd().with(func(r *rules) { r.lease = 3 })
		bounds["a queue of three, and late replies"] = crowd().with(func(r *rules) { r.prompt = false })
		bounds["a queue of three, and renewals"] = crowd().with(func(r *rules) { r.fleeting = false })
		bounds["a queue of three in a server that loses its data: the fence"] = crowd().with(func(r *rules) {
			r.crashes, r.overlaps = 1, true
		})
		bounds["a quorum, and a member that loses its data"] = three().with(func(r *rules) { r.crashes = 1 })
	}
	for name, r := range bounds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			f := explore[world](&r, limit)
			t.Logf("%d states in %.1f s", f.states, time.Since(began).Seconds())
			if f.wrong != "" {
				t.Fatalf("%s:\n%s", f.wrong, f.trace)
			}
		})
	}
}

// If any one of its rules is left out, the protocol does not keep what it promises.
func TestEachRuleIsNeeded(t *testing.T) {
	const (
		overlap = "two are inside"
		stale   = "the resource has taken a write of a holder that has been overtaken"
		placed  = "a place is kept for a client whose clean-up is over"
		leaked  = "a server holds the lock for a client whose clean-up is over"
	)
	for name, test := range map[string]struct {
		of    rules
		leave func(r *rules)
		wrong string
		far   bool
	}{
		"no fence":                             {one(), func(r *rules) { r.noFence = true }, stale, false},
		"the deadline counts from the reply":   {one(), func(r *rules) { r.fromReply = true }, overlap, false},
		"no look at the deadline at the grant": {one(), func(r *rules) { r.noRecheck = true }, overlap, false},
		"no margin for clocks that drift":      {one(), func(r *rules) { r.noMargin = true }, overlap, false},
		"no not-after":                         {one(), func(r *rules) { r.noNotAfter = true }, leaked, false},
		"a clean-up that ends too early":       {one(), func(r *rules) { r.noSettling = true }, leaked, false},
		"a release by whoever sends one":       {one(), func(r *rules) { r.noOwner = true }, overlap, false},
		"tokens that are counted, and data lost": {one(), func(r *rules) {
			r.counted, r.crashes, r.overlaps = true, 1, true
		}, stale, false},
		"data lost, and no promise of overlaps given up": {one(), func(r *rules) { r.crashes = 1 }, overlap, false},

		"a quorum of less than a majority":        {three(), func(r *rules) { r.smallQuorum = true }, overlap, false},
		"a quorum, no fence":                      {three(), func(r *rules) { r.noFence = true }, stale, false},
		"a quorum, its token not written back":    {three(), func(r *rules) { r.noWriteBack = true }, stale, false},
		"an empty member that counts at once":     {three(), func(r *rules) { r.noQuarantine, r.crashes = true, 1 }, overlap, false},
		"an empty member, its clock far behind":   {three(), func(r *rules) { r.clocksApart, r.crashes = true, 1 }, stale, true},
		"an empty member, and tokens are counted": {three(), func(r *rules) { r.counted, r.crashes = true, 1 }, stale, true},

		"a queue, the deadline counts from the message":   {crowd(), func(r *rules) { r.fromMessage = true }, overlap, false},
		"a queue, it counts from an unanswered question":  {crowd(), func(r *rules) { r.fromUnheard = true }, overlap, false},
		"a queue, no look at the deadline":                {crowd(), func(r *rules) { r.noRecheck = true }, overlap, false},
		"a queue, a message to another owner":             {crowd(), func(r *rules) { r.anyOwner = true }, overlap, false},
		"a queue, a message to who never heard an answer": {crowd(), func(r *rules) { r.noDoubt = true }, overlap, false},
		"a queue, a message from before a place was lost": {crowd(), func(r *rules) { r.oldMessage = true }, overlap, false},
		"a queue, a clean-up that ends too early":         {queue(), func(r *rules) { r.hasty = true }, placed, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.far && !long() {
				t.Skip("too far to go: HOLDFAST_LONG=1 does")
			}
			r := test.of.with(test.leave)
			f := explore[world](&r, limit)
			if f.wrong != test.wrong {
				t.Fatalf("after %d states: %q, want %q\n%s", f.states, f.wrong, test.wrong, f.trace)
			}
			t.Logf("after %d states: %s\n%s", f.states, f.wrong, f.trace)
		})
	}
}

// The protocol keeps its promises in the line of one process as well. With two requests that are
// not answered, one of them late, the lock may be handed to a place that its waiter has just given
// up.
func TestNothingGoesWrongInALine(t *testing.T) {
	bounds := map[string]lineRules{
		"every request is answered": {lease: 2},
	}
	if long() {
		bounds["a request is not answered"] = lineRules{lease: 2, unheard: 1}
		bounds["a request is late"] = lineRules{lease: 2, unheard: 1, late: 1}
		bounds["two requests are not answered"] = lineRules{lease: 2, unheard: 2}
		bounds["two requests, one of them late"] = lineRules{lease: 2, unheard: 2, late: 1, ghosts: true}
	}
	for name, r := range bounds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			f := explore[lineWorld](&r, 6*limit)
			t.Logf("%d states in %.1f s", f.states, time.Since(began).Seconds())
			if f.wrong != "" {
				t.Fatalf("%s:\n%s", f.wrong, f.trace)
			}
		})
	}
}

// If any one of its rules is left out, the line goes wrong. Some names are also the names of the
// same bugs as planted in the code: see package planted.
func TestEachRuleOfALineIsNeeded(t *testing.T) {
	const (
		older  = "a token does not grow"
		astray = "the seat is lost"
		kept   = "a place is kept for nobody"
		ghost  = "the lock is kept for nobody"
	)
	unheard, late := lineRules{lease: 2, unheard: 2}, lineRules{lease: 2, unheard: 1, late: 1}
	both := lineRules{lease: 2, unheard: 2, late: 1, ghosts: true}
	for name, test := range map[string]struct {
		of      lineRules
		without lineRule
		wrong   string
		far     bool
	}{
		"a waiter that takes over its process's place forgets the doubt about it": {unheard, staysInDoubt, older, false},
		"a message is believed after an unheard request":                          {unheard, doubtsUnheard, astray, false},
		"a seat without a number is not in doubt":                                 {unheard, doubtsUnknown, older, false},
		"a message is believed after the place was lost":                          {unheard, doubtsLost, older, false},
		"a message is believed long after the place was kept":                     {both, keptLately, older, true},
		"a head in doubt leaves the seat to the next":                             {unheard, leavesInDoubt, astray, false},
		"a release keeps the seat that was given up meanwhile":                    {unheard, dropsJoining, ghost, false},
		"a seat that an unheard request may have taken counts whole":              {unheard, agesUnheard, astray, false},
		"the clean-up ends before the late request":                               {late, cleansUpLong, kept, false},
		"a late grant leaves the next owner of its process in the queue":          {late, cleansUpNext, ghost, false},
		"a place that the line has is given up with a late grant":                 {late, sparesWaiters, astray, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.far && !long() {
				t.Skip("too far to go: HOLDFAST_LONG=1 does")
			}
			r := test.of
			r.without = test.without
			f := explore[lineWorld](&r, 3*limit)
			if f.wrong != test.wrong {
				t.Fatalf("after %d states: %q, want %q\n%s", f.states, f.wrong, test.wrong, f.trace)
			}
			t.Logf("after %d states: %s\n%s", f.states, f.wrong, f.trace)
		})
	}
}
