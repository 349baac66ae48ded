// These bugs are in barriers.

package planted

var barrierBugs = []bug{
	{name: "the last arrival, sent again, arrives in the next generation", quick: true, by: "barrier TestScripts TestAwait_LostReplies",
		at: "barrier/lua/enter.lua", old: "if entry then", new: "if entry and current.open then"},
	{name: "a party that has died does not break its generation", quick: true, by: "barrier TestScripts TestAwait_Ends",
		at: "barrier/lua/generation.lua", old: "current.open and parse(redis.call('HGET', KEYS[1], over[i])) == current.id", new: "false"},
	{name: "a place of an earlier generation that is over breaks the present one", by: "barrier TestScripts TestModel",
		at: "barrier/lua/generation.lua", old: "== current.id then", new: "then"},
	{name: "a generation that has broken counts as tripped", by: "barrier TestScripts TestAwait_Ends",
		at: "barrier/lua/generation.lua how", old: "string.find(current.broken, ' ' .. text(id) .. ' ', 1, true)", new: "false"},
	{name: "a request of a party that has left arrives all the same", by: "barrier TestScripts TestAwait_LateArrival",
		at: "barrier/lua/release.lua", old: "failure = redis.pcall('HSET', KEYS[1], owner, 'left')",
		new: "failure = redis.pcall('HDEL', KEYS[1], owner)"},
	{name: "a barrier is broken whichever generation is named", by: "barrier TestScripts",
		at: "barrier/lua/break.lua", old: "if how(id) == 0 then", new: "if current.open then"},
	{name: "parties that disagree about their number meet", by: "barrier TestScripts TestAwait_Refused",
		at: "barrier/lua/enter.lua", old: "if current.open and current.parties ~= parties then", new: "if false then"},
	{name: "a party whose ctx ends leaves without breaking its generation", by: "barrier TestAwait_CancelledAtEachMoment",
		at: "barrier party.verdict", old: "how, err := p.barrier.breaks(bounded, p.trip.Generation)",
		new: "how, _, _, err := p.barrier.look(bounded, p.trip.Generation)"},
	{name: "a party is told that it left, though the barrier has tripped", quick: true, by: "barrier TestAwait_TrippedBeforeItsCtxEnded",
		at: "barrier party.verdict", old: "case how == tripped: return nil"},
	{name: "an arrival that may have been the last does not say so", by: "barrier TestAwait_LateArrival",
		at: "barrier party.arrive", old: "unknown(errs.Bare(err))", new: "errs.Bare(err)"},
	{name: "a place is not renewed", by: "barrier TestAwait_WaitsForLong",
		at: "barrier/lua/renew.lua", old: "if expiry > score then", new: "if false then"},
	{name: "those that wait are not told that the barrier has tripped", by: "barrier TestAwait_Trips",
		at: "barrier/lua/enter.lua", old: "if arrival == 0 or broke then", new: "if broke then"},
	{name: "an arrival is sent again when its place may be over", by: "barrier TestAwait_AnArrivalIsNotSentWhenItsPlaceIsOver",
		at: "barrier resource.Acquire", old: "Until: time.Now().Add(length - length/10),"},
}
