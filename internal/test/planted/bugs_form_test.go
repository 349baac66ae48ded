// These bugs are in what Do offers around a lock, and in Shutdown.

package planted

var formBugs = []bug{
	{
		name: "LeaseFrom finds the outermost lease",
		file: "internal/hold/context.go",
		old:  "\t\tif h.lease.hold.isOn(e, r) {\n\t\t\treturn h.lease\n",
		new:  "\t\tif h.lease.hold.isOn(e, r) {\n\t\t\tif outer := Carried(h.Context, e, r); outer != nil {\n\t\t\t\treturn outer\n\t\t\t}\n\t\t\treturn h.lease\n",
		pkg:  ".", tests: []string{"TestLeaseFrom_SeveralLeases"},
	},
	{
		name: "the bound of the wait bounds the work",
		file: "do.go",
		old:  "\theld := l.Context(ctx)\n",
		new:  "\tif d.wait != nil && *d.wait > 0 {\n\t\tshort, cancel := context.WithTimeout(ctx, *d.wait)\n\t\tdefer cancel()\n\t\tctx = short\n\t}\n\theld := l.Context(ctx)\n",
		pkg:  ".", tests: []string{"TestWaitAtMost"},
	},
	{
		name: "a hold that is to stay is passed on within the process",
		file: "internal/hold/cohort.go",
		old:  "\tif h.stillStays() > 0 || h.late",
		new:  "\tif h.late",
		pkg:  ".", tests: []string{"TestAtLeast"},
	},
	{
		name: "a hold that is to stay is released",
		file: "internal/hold/release.go",
		old:  "\tif left := h.staying(); left > 0 {\n",
		new:  "\tif left := h.staying(); left < 0 {\n",
		pkg:  ".", tests: []string{"TestAtLeast", "TestAtLeast_NobodyIsNeeded"},
		quick: true,
	},
	{
		name: "the release of a fixed lease that is over frees a hold that is to stay",
		file: "internal/hold/release.go",
		old:  "\tif h.staying() > 0 {\n\t\th.settleStaying",
		new:  "\tif h.staying() < 0 {\n\t\th.settleStaying",
		pkg:  ".", tests: []string{"TestAtLeast_Fixed"},
	},
	{
		name: "a process that dies leaves a hold that is to stay for its lease alone",
		file: "internal/hold/atleast.go",
		old:  "h.engine.AgeAt(end) >= stays",
		new:  "stays > 0",
		pkg:  ".", tests: []string{"TestAtLeast_AfterACrash"},
	},
	{
		name: "a renewal on its way keeps a hold that stays for another lease",
		file: "internal/hold/renew.go",
		old:  "lost == byLoss || lost == notYet && stays",
		new:  "lost == byLoss || lost == byClose && stays",
		pkg:  ".", tests: []string{"TestAtLeast_ARenewalOnItsWay"},
	},
	{
		name: "the last release never shortens the time of a hold that stays",
		file: "internal/lockhash/lua/keep.lua",
		old:  "redis.call('PEXPIRE', KEYS[1], ARGV[3])\n",
		new:  "if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then\n  redis.call('PEXPIRE', KEYS[1], ARGV[3])\nend\n",
		pkg:  "rlock", tests: []string{"TestKeepScript"},
	},
	{
		name: "Shutdown lets those that wait wait on",
		file: "internal/hold/acquire.go",
		old:  "\tif !a.ofWork {\n\t\tw.Closing",
		new:  "\tif a.ofWork {\n\t\tw.Closing",
		pkg:  ".", tests: []string{"TestShutdown_WaitsForWhatIsHeld"},
	},
	{
		name: "Shutdown refuses work under a lease",
		file: "internal/hold/acquire.go",
		old:  "\treturn !a.ofWork && a.engine",
		new:  "\treturn a.engine",
		pkg:  ".", tests: []string{"TestShutdown_WaitsForWhatIsHeld"},
		quick: true,
	},
	{
		name: "a grant that comes after Shutdown has begun is kept",
		file: "internal/hold/acquire.go",
		old:  "\treturn !a.ofWork && a.engine",
		new:  "\treturn a.ofWork && a.engine",
		pkg:  ".", tests: []string{"TestShutdown_AGrantOnItsWay"},
	},
	{
		name: "Shutdown does not wait for releases",
		file: "internal/engine/shutdown.go",
		old:  "\tcase <-e.work.empty():\n\t\treturn nil\n",
		new:  "\tcase <-e.work.empty():\n\t\treturn nil\n\tdefault:\n\t\treturn nil\n",
		pkg:  ".", tests: []string{"TestShutdown_WaitsForReleases"},
	},
}
