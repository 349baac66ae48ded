// These bugs are in what Do offers around a lock, and in Shutdown.

package planted

var formBugs = []bug{
	{name: "LeaseFrom finds the outermost lease", by: ". TestLeaseFrom_SeveralLeases",
		at: "internal/hold Carried", old: "return h.lease",
		new: "if outer := Carried(h.Context, e, r); outer != nil { return outer }; return h.lease"},
	{name: "the bound of the wait bounds the work", by: ". TestWaitAtMost",
		at: ". DoValue", old: "held := l.Context(ctx)",
		new: "if d.wait != nil && *d.wait > 0 { short, cancel := context.WithTimeout(ctx, *d.wait); defer cancel(); ctx = short }; held := l.Context(ctx)"},
	{name: "a hold that is to stay is passed on within the process", by: ". TestAtLeast",
		at: "internal/hold hold.heir", old: "h.stillStays() > 0 || h.late != nil", new: "h.late != nil"},
	{name: "a hold that is to stay is released", quick: true, by: ". TestAtLeast TestAtLeast_NobodyIsNeeded",
		at: "internal/hold hold.free", old: "left > 0", new: "left < 0"},
	{name: "the release of a fixed lease that is over frees a hold that is to stay", by: ". TestAtLeast_Fixed",
		at: "internal/hold hold.settle", old: "h.staying() > 0", new: "h.staying() < 0"},
	{name: "a process that dies leaves a hold that is to stay for its lease alone", by: ". TestAtLeast_AfterACrash",
		at: "internal/hold Lease.lastUntil", old: "h.engine.AgeAt(end) >= stays", new: "stays > 0"},
	{name: "a renewal on its way keeps a hold that stays for another lease", by: ". TestAtLeast_ARenewalOnItsWay",
		at: "internal/hold hold.prolongedTooLate", old: "lost == notYet", new: "lost == byClose"},
	{name: "the last release never shortens the time of a hold that stays", by: "rlock TestKeepScript",
		at: "internal/lockhash/lua/keep.lua", old: "redis.call('PEXPIRE', KEYS[1], ARGV[3])",
		new: "if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end"},
	{name: "Shutdown lets those that wait wait on", by: ". TestShutdown_WaitsForWhatIsHeld",
		at: "internal/hold acquisition.granted", old: "!a.ofWork", new: "a.ofWork"},
	{name: "Shutdown refuses work under a lease", quick: true, by: ". TestShutdown_WaitsForWhatIsHeld",
		at: "internal/hold acquisition.turnedAway", old: "!a.ofWork && a.engine.Draining().Err() != nil", new: "a.engine.Draining().Err() != nil"},
	{name: "a grant that comes after Shutdown has begun is kept", by: ". TestShutdown_AGrantOnItsWay",
		at: "internal/hold acquisition.turnedAway", old: "!a.ofWork", new: "a.ofWork"},
	{name: "Shutdown does not wait for releases", by: ". TestShutdown_WaitsForReleases",
		at: "internal/engine Engine.drained", old: "case <-e.work.empty(): return nil",
		new: "case <-e.work.empty(): return nil; default: return nil"},
}
