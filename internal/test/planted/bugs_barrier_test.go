// These bugs are in barriers.

package planted

var barrierBugs = []bug{
	{
		name: "the last arrival, sent again, arrives in the next generation",
		file: "barrier/lua/enter.lua",
		old:  "if entry then",
		new:  "if entry and current.open then",
		pkg:  "barrier", tests: []string{"TestScripts", "TestAwait_LostReplies"},
		quick: true,
	},
	{
		name: "a party that has died does not break its generation",
		file: "barrier/lua/generation.lua",
		old:  "if current.open and parse(redis.call('HGET', KEYS[1], over[i])) == current.id then",
		new:  "if false then",
		pkg:  "barrier", tests: []string{"TestScripts", "TestAwait_Killed"},
		quick: true,
	},
	{
		name: "a place of an earlier generation that is over breaks the present one",
		file: "barrier/lua/generation.lua",
		old:  "if current.open and parse(redis.call('HGET', KEYS[1], over[i])) == current.id then",
		new:  "if current.open and parse(redis.call('HGET', KEYS[1], over[i])) then",
		pkg:  "barrier", tests: []string{"TestScripts", "TestModel"},
	},
	{
		name: "a generation that has broken counts as tripped",
		file: "barrier/lua/generation.lua",
		old:  "elseif string.find(current.broken, ' ' .. text(id) .. ' ', 1, true) then",
		new:  "elseif false then",
		pkg:  "barrier", tests: []string{"TestScripts", "TestAwait_Cancelled"},
	},
	{
		name: "a request of a party that has left arrives all the same",
		file: "barrier/lua/release.lua",
		old:  "failure = redis.pcall('HSET', KEYS[1], owner, 'left')",
		new:  "failure = redis.pcall('HDEL', KEYS[1], owner)",
		pkg:  "barrier", tests: []string{"TestScripts", "TestAwait_LateArrival"},
	},
	{
		name: "a barrier is broken whichever generation is named",
		file: "barrier/lua/break.lua",
		old:  "if how(id) == 0 then",
		new:  "if current.open then",
		pkg:  "barrier", tests: []string{"TestScripts"},
	},
	{
		name: "parties that disagree about their number meet",
		file: "barrier/lua/enter.lua",
		old:  "if current.open and current.parties ~= parties then",
		new:  "if false then",
		pkg:  "barrier", tests: []string{"TestScripts", "TestAwait_OtherParties"},
	},
	{
		name: "a party whose ctx ends leaves without breaking its generation",
		file: "barrier/await.go",
		old:  "how, err := p.barrier.breaks(bounded, p.trip.Generation)",
		new:  "how, _, _, err := p.barrier.look(bounded, p.trip.Generation)",
		pkg:  "barrier", tests: []string{"TestAwait_CancelledAtEachMoment"},
	},
	{
		name: "a party is told that it left, though the barrier has tripped",
		file: "barrier/await.go",
		old:  "case how == tripped:\n\t\treturn nil\n\tcase errors.Is(why, errs.Lost):",
		new:  "case errors.Is(why, errs.Lost):",
		pkg:  "barrier", tests: []string{"TestAwait_TrippedBeforeItsCtxEnded"},
		quick: true,
	},
	{
		name: "an arrival that may have been the last does not say so",
		file: "barrier/await.go",
		old:  "return nil, unknown(errs.Bare(err)) // it may have been the last",
		new:  "return nil, errs.Bare(err)",
		pkg:  "barrier", tests: []string{"TestAwait_LateArrival"},
	},
	{
		name: "a place is not renewed",
		file: "barrier/lua/renew.lua",
		old:  "if expiry > score then",
		new:  "if false then",
		pkg:  "barrier", tests: []string{"TestAwait_WaitsForLong"},
	},
	{
		name: "those that wait are not told that the barrier has tripped",
		file: "barrier/lua/enter.lua",
		old:  "if arrival == 0 or broke then",
		new:  "if broke then",
		pkg:  "barrier", tests: []string{"TestAwait_Trips"},
	},
}
