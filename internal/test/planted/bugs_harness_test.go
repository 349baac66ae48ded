// These bugs are those for which the suite has its bounds: load stretches a bound, and the bound
// still fails for its bug.

package planted

var harnessBugs = []bug{
	{
		name: "no margin for a clock of the server that is fast",
		file: "internal/hold/settings.go",
		old:  "return d/100 + 5*time.Millisecond",
		new:  "return 0 * d",
		pkg:  "internal/test/faults", tests: []string{"TestClocksOfDifferentRates"},
	},
	{
		name: "a loss is told a tenth of a second after its deadline",
		file: "internal/hold/end.go",
		old:  "lost := !now.Before(h.deadline)",
		new:  "lost := !now.Before(h.deadline.Add(100 * time.Millisecond))",
		pkg:  "internal/test/faults", tests: []string{"TestServerFrozenForLongerThanTheLease"},
	},
	{
		name: "a lease is not renewed",
		file: "internal/hold/hold.go",
		old:  "renew = !h.renewing && (h.length() > 0 || h.suspect) && h.engine.AgeAt(now) >= h.renewAt",
		new:  "renew = false && h.engine.AgeAt(now) >= h.renewAt",
		pkg:  "internal/test/faults", tests: []string{"TestUsersPoolExhausted"},
	},
	{
		name: "one visit takes back all permits that are over",
		file: "semaphore/lua/lease.lua",
		old:  "local back = math.min(over, math.max(1000, #ids))",
		new:  "local back = over",
		pkg:  "semaphore", tests: []string{"TestHundredThousandExpiredPermits"},
	},
	{
		name: "a thread that started a server ends with the account of starvation",
		file: "internal/test/redistest/pulse_linux.go",
		old:  "	defer runtime.UnlockOSThread()\n",
		new:  "",
		pkg:  "internal/test/redistest", tests: []string{"TestAServerOutlivesThePulse"},
	},
}
