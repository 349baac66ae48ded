// These bugs are in semaphores, latches, quorums and tokens.

package planted

var countedBugs = []bug{

	// Quorums.

	{
		name: "a server that another quorum began with counts at once",
		file: "multilock/member.go",
		old:  "m.since == fresh && m.set == q.set",
		new:  "m.since == fresh",
		pkg:  "multilock", tests: []string{"TestQuorum_BeginsBesideAnother"},
		quick: true,
	},
	{
		name: "a marker ahead of the clock is waited for",
		file: "multilock/lua/mark.lua",
		old:  "tonumber(at or 0) > now",
		new:  "false",
		pkg:  "multilock", tests: []string{"TestQuorum_MarkerAheadOfTheClock"},
	},
	{
		name: "a quorum that began in the future is still beginning",
		file: "multilock/begin.go",
		old:  "m.since == fresh && m.age >= 0 && m.age < beginLimit",
		new:  "m.since == fresh && m.age < beginLimit",
		pkg:  "multilock", tests: []string{"TestQuorum_BeganAheadOfTheClock"},
	},
	{
		name: "the members of a hold that ended by Close are renewed for ever",
		file: "multilock/hold.go",
		old:  "\t\t(*hold.Lease)(m).Retire()\n",
		new:  "\t\t_ = (*hold.Lease).Retire\n\t\t_ = m\n",
		pkg:  "multilock", tests: []string{"TestQuorum_ClosedInPart"},
	},
	{
		name: "a hold is told as closed though a server was lost",
		file: "multilock/hold.go",
		old:  "case all-closed < majority:",
		new:  "case closed > 0:",
		pkg:  "multilock", tests: []string{"TestQuorum_ClosedAndLost"},
	},
	{
		name: "the members of a hold that ended by Close are never given back",
		file: "multilock/hold.go",
		old:  "\t\th.forgo(l)\n",
		new:  "",
		pkg:  "multilock", tests: []string{"TestQuorum_ClosedInPart"},
	},
	{
		name: "one server counts as two by its databases",
		file: "multilock/quorum.go",
		old:  "server = server[:i]",
		new:  "_ = i",
		pkg:  "multilock", tests: []string{"TestQuorum_OneServerTwice"},
	},
	{
		name: "re-entry into a quorum depends on the order of its servers",
		file: "multilock/quorum.go",
		old:  "\tslices.Sort(parts)\n",
		new:  "",
		pkg:  "multilock", tests: []string{"TestQuorum_ReentersInAnyOrder"},
	},
	{
		name: "the deadline of a quorum is that of its longest member",
		file: "multilock/hold.go",
		old:  "return ends[h.quorum.majority()-1]",
		new:  "return ends[0]",
		pkg:  "multilock", tests: []string{"TestQuorum_DeadlineOfTheMajority"},
	},
	{
		name: "a quorum is granted though its leases are over",
		file: "multilock/round.go",
		old:  "if !time.Now().Before(h.deadline()) {",
		new:  "if false {",
		pkg:  "multilock", tests: []string{"TestQuorum_GrantedTooLate"},
	},
	{
		name: "several locks are given up when one is lost while another is waited for",
		file: "multilock/multilock.go",
		old:  "if !wait || !errors.Is(err, errAgain) {",
		new:  "if true || !wait || !errors.Is(err, errAgain) {",
		pkg:  "multilock", tests: []string{"TestMultiLock_LosesOneWhileItWaits"},
	},
	{
		name: "a late mark makes a server that has lost its data count",
		file: "multilock/lua/mark.lua",
		old:  "write == 'new' and not none and marker == ARGV[4]",
		new:  "write == 'new' and (none or kind == 'empty')",
		pkg:  "multilock", tests: []string{"TestQuorum_AmnesiaWhileItBegins"},
		quick: true,
	},
	{
		name: "a quorum begins though its servers were never empty at the same time",
		file: "multilock/begin.go",
		old:  "if err == nil && m.text != at.marker {",
		new:  "if _ = m; false {",
		pkg:  "multilock", tests: []string{"TestQuorum_AmnesiaWhileItBegins"},
	},
	{
		name: "a grant counts by a marker that is younger",
		file: "multilock/member.go",
		old:  "a.marker.text != at.marker && a.marker.age-time.Since(began) < beginLimit",
		new:  "false",
		pkg:  "multilock", tests: []string{
			"TestQuorum_AmnesiaBetweenTheGrantAndTheMarker", "TestQuorum_BeginsAgainWhileARoundIsUnderWay",
		},
	},
	{
		name: "a server that was found empty counts by itself",
		file: "multilock/member.go",
		old:  "(m.since == fresh || m.since == lost) && m.age >= q.longest",
		new:  "m.since != missing && m.age >= q.longest",
		pkg:  "multilock", tests: []string{"TestQuorum_EmptyServersDoNotCountByThemselves"},
	},
	{
		name: "a quorum is told from servers that lost their data before all have answered",
		file: "multilock/round.go",
		old:  "errors.Is(a.err, errs.Busy) && a.marker.since != empty",
		new:  "errors.Is(a.err, errs.Busy)",
		pkg:  "multilock", tests: []string{"TestQuorum_BeginsTogetherWithASlowServer"},
	},
	{
		name: "work under a quorum is refused during Shutdown",
		file: "internal/hold/context.go",
		old:  "return carriesOf(ctx, e) || underOf(ctx, e)",
		new:  "return carriesOf(ctx, e)",
		pkg:  "multilock", tests: []string{"TestShutdownServesWorkUnderSeveralLocks"},
	},
	{
		name: "a quorum's lease is work also for a server that it has lost",
		file: "internal/hold/context.go",
		old:  "return l.hold.engine == e && l.why() == nil",
		new:  "return l.hold.engine == e && (l.why() == nil || true)",
		pkg:  "multilock", tests: []string{"TestShutdownServesAQuorumOnlyWhereItIsHeld"},
	},
	{
		name: "a wait for several locks is work under those that it has",
		file: "multilock/multilock.go",
		old:  "			unwatch := context.AfterFunc(l.Context(held), func() { cancel(l.Err()) })\n			defer unwatch()\n",
		new:  "			held = l.Context(held)\n",
		pkg:  "multilock", tests: []string{"TestShutdownEndsAWaitForSeveralLocks"},
	},
	{
		name: "a lease on several locks is found whatever Client has it",
		file: "multilock/multilock.go",
		old:  "if !found || m.reenters(l, under) {",
		new:  "if !found || true || m.reenters(l, under) {",
		pkg:  "multilock", tests: []string{"TestMultiLock_LeaseFromIsOfTheSameClients"},
	},
	{
		name: "a try of a quorum does not say that its context has ended",
		file: "multilock/quorum.go",
		old:  "				err = because(end, err)\n",
		new:  "				_ = end\n",
		pkg:  "multilock", tests: []string{"TestATryOfAQuorumThatItsContextEndsSaysSo"},
	},

	// Tokens.

	{
		name: "a mutex's token ahead of the clock is forgotten",
		file: "internal/lockhash/lua/token.lua",
		old:  "math.floor((token - now) / 1000) + 7200000 or 0",
		new:  "7200000 or 0",
		pkg:  "rlock", tests: []string{"TestTokensGrowAfterAClockThatWasAhead"},
	},
	{
		name: "a writer's token ahead of the clock is forgotten",
		file: "rwlock/lua/lock.lua",
		old:  "string.format('%.0f', ARGV[4] + ahead)",
		new:  "string.format('%.0f', ARGV[4] + 0 * ahead)",
		pkg:  "rlock", tests: []string{"TestTokensGrowAfterAClockThatWasAhead"},
	},
	{
		name: "a quorum's token ahead of a server's clock is forgotten there",
		file: "multilock/lua/raise.lua",
		old:  "string.format('%.0f', ARGV[3] + ahead)",
		new:  "string.format('%.0f', ARGV[3] + 0 * ahead)",
		pkg:  "multilock", tests: []string{"TestQuorum_TokenAheadOfTheClocks"},
	},

	// Calls that no owner stands behind.

	{
		name: "a latch is open when Redis has lost its data",
		file: "latch/lua/look.lua",
		old:  "-- data, or both were deleted: nothing says that the count came to zero.\nreturn {3, now}",
		new:  "return {1, now}",
		pkg:  "latch", tests: []string{"TestLostDataOpensNothing"},
	},
	{
		name: "a call that may have counted is told as refused",
		file: "internal/engine/ledger.go",
		old:  "err != nil && (goesOn || unheard)",
		new:  "err != nil && (goesOn || unheard && bounded.Err() != nil)",
		pkg:  "semaphore", tests: []string{"TestARefusedReleaseMayHaveCounted"},
	},
	{
		name: "the record of a call in doubt is gone when the clock is set",
		file: "internal/engine/ledger.go",
		old:  "ledgerLife = 24 * time.Hour",
		new:  "ledgerLife = 10 * time.Minute",
		pkg:  "semaphore", tests: []string{"TestACallInDoubtOutlivesAStepOfTheClock"},
	},
	{
		name: "a request for more permits than there are in all waits",
		file: "semaphore/lua/take.lua",
		old:  "all > 0 and wanted > all and number <= all and 2 or 0",
		new:  "0",
		pkg:  "semaphore", tests: []string{"TestMoreThanThereAreInAll"},
	},
	{
		name: "a request for permits that are still to be made is refused",
		file: "semaphore/lua/take.lua",
		old:  "all > 0 and wanted > all and number <= all and 2 or 0",
		new:  "wanted > all and 2 or 0",
		pkg:  "semaphore", tests: []string{"TestInAllIsNotKnown"},
	},
	{
		name: "a take is undone into another semaphore",
		file: "semaphore/lua/cancel.lua",
		old:  "and (not since or since == result)",
		new:  "",
		pkg:  "semaphore", tests: []string{"TestAnUndoneTakeGivesNothingToAnother"},
	},

	// Stripes, and functions that wrap a Locker.

	{
		name: "a number of stripes is asked for once",
		file: "rlock/striped.go",
		old:  "case now-time.Duration(last) >= askAgain && s",
		new:  "case now-time.Duration(last) >= 1000*askAgain && s",
		pkg:  "rlock", tests: []string{"TestALostNumberOfStripesIsRestored", "TestAnotherNumberOfStripesIsNoticed"},
	},
	{
		name: "a sync.Locker re-enters",
		file: "internal/hold/context.go",
		old:  "if _, ok := key.(LeaseKey); ok {\n\t\treturn nil",
		new:  "if _, ok := key.(LeaseKey); ok && false {\n\t\treturn nil",
		pkg:  ".", tests: []string{"TestASyncLockerDoesNotReenter"},
	},
}
