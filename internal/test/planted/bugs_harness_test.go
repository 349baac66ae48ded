// These bugs are those for which the suite has its bounds: load stretches a bound, and the bound
// still fails for its bug.

package planted

var harnessBugs = []bug{
	{name: "no margin for a clock of the server that is fast", by: "internal/test/faults TestClocksOfDifferentRates",
		at: "internal/hold margin", old: "d/100 + 5*time.Millisecond", new: "0 * d"},
	{name: "a loss is told a tenth of a second after its deadline", by: "internal/test/faults TestClocksOfDifferentRates",
		at: "internal/hold Lease.overAt", old: "l.hold.deadline.Sub(now)", new: "l.hold.deadline.Add(100 * time.Millisecond).Sub(now)"},
	{name: "a lease is not renewed", by: "internal/test/faults TestUsersPoolExhausted",
		at: "internal/hold hold.Tick", old: "!h.renewing && (h.needs().renewal > 0 || h.suspect)", new: "false"},
	{name: "one visit takes back all permits that are over", step: servers, by: "semaphore TestHundredThousandExpiredPermits",
		at: "semaphore/lua/lease.lua", old: "local back = math.min(over, math.max(1000, #ids))", new: "local back = over"},
	{name: "a thread that started a server ends with the account of starvation", step: servers, by: "internal/test/redistest TestAServerOutlivesThePulse",
		at: "internal/test/redistest onProcessor", old: "defer runtime.UnlockOSThread()"},
}
