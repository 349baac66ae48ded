// These bugs are in semaphores, latches, quorums and tokens.

package planted

var countedBugs = []bug{

	// Quorums.

	{name: "a server that another quorum began with counts at once", quick: true, by: "quorum TestQuorum_BeginsBesideAnother",
		at: "quorum marker.beganOn", old: "m.since == quorumBegan && m.set == set", new: "m.since == quorumBegan"},
	{name: "a marker ahead of the clock is waited for", by: "quorum TestQuorum_MarkerAheadOfTheClock",
		at: "quorum/lua/mark.lua", old: "local none, later = marker == '', tonumber(at or 0) > now",
		new: "local none, later = marker == '', false"},
	{name: "a quorum that began in the future is still beginning", by: "quorum TestQuorum_BeganAheadOfTheClock",
		at: "quorum Quorum.doubts", old: "m.since == quorumBegan && m.age >= 0 && m.age < beginLimit", new: "m.since == quorumBegan && m.age < beginLimit"},
	{name: "the members of a hold that ended by Close are renewed for ever", by: "quorum TestQuorum_ClosedInPart",
		at: "quorum majorityHold.retire", old: "(*hold.Lease)(m).Retire()", new: "_ = (*hold.Lease).Retire; _ = m"},
	{name: "a hold is told as closed though a server was lost", by: "quorum TestQuorum_ClosedAndLost",
		at: "quorum majorityHold.endWithoutMajority", old: "all-closed < majority", new: "closed > 0"},
	{name: "the members of a hold that ended by Close are never given back", by: "quorum TestQuorum_ClosedInPart",
		at: "quorum majorityHold.release", old: "h.forgo(l)"},
	{name: "one server counts as two by its databases", by: "quorum TestQuorum_OneServerTwice",
		at: "quorum serverOf", old: "server = server[:i]", new: "_ = i"},
	{name: "re-entry into a quorum depends on the order of its servers", by: "quorum TestQuorum_ReentersInAnyOrder",
		at: "quorum identityOf", old: "slices.Sort(parts)"},
	{name: "the deadline of a quorum is that of its longest member", by: "quorum TestQuorum_DeadlineOfTheMajority",
		at: "quorum majorityHold.deadline", old: "h.quorum.majority()-1", new: "0"},
	{name: "a quorum is granted though its leases are over", by: "quorum TestQuorum_GrantedTooLate",
		at: "quorum Quorum.grant", old: "!time.Now().Before(h.deadline())", new: "false"},
	{name: "several locks are given up when one is lost while another is waited for", by: "multilock TestMultiLock_LosesOneWhileItWaits",
		at: "multilock MultiLock.acquire", old: "!wait || !errors.Is(err, errAgain)", new: "true || !wait || !errors.Is(err, errAgain)"},
	{name: "a late mark makes a server that has lost its data count", quick: true, by: "quorum TestQuorum_AmnesiaWhileItBegins",
		at: "quorum/lua/mark.lua", old: "or write == 'new' and not none and marker == ARGV[4]",
		new: "or write == 'new' and (none or kind == 'empty')"},
	{name: "a quorum begins though its servers were never empty at the same time", by: "quorum TestQuorum_AmnesiaWhileItBegins",
		at: "quorum Quorum.begin", old: "err == nil && m.text != at.marker", new: "_ = m; false"},
	{name: "a grant counts by a marker that is younger",
		at: "quorum Quorum.ask", old: "a.marker.text != at.marker && a.marker.age-time.Since(began) < beginLimit", new: "false",
		by: "quorum TestQuorum_AmnesiaBetweenTheGrantAndTheMarker TestQuorum_BeginsAgainWhileARoundIsUnderWay"},
	{name: "a server that was found empty counts by itself", by: "quorum TestQuorum_EmptyServersDoNotCountByThemselves",
		at: "quorum Quorum.trusts", old: "(m.since == quorumBegan || m.since == dataLost)", new: "m.since != noMarker"},
	{name: "a quorum is told from servers that lost their data before all have answered", by: "quorum TestQuorum_BeginsTogetherWithASlowServer",
		at: "quorum Quorum.judge", old: "errors.Is(a.err, errs.Busy) && a.marker.since != foundEmpty", new: "errors.Is(a.err, errs.Busy)"},
	{name: "a server that another is about to mark as new is marked as lost", by: "quorum TestQuorum_BeginsTogetherWithASlowServer",
		at: "quorum Quorum.doubts", old: "case beginning: return nil, false"},
	{name: "several locks are granted though one was lost with the last grant", by: "multilock TestMultiLock_LeavesNothing",
		at: "multilock MultiLock.take", old: "if over := ended(taken); over != nil {", new: "if over := ended(taken); false && over != nil {"},
	{name: "work under a quorum is refused during Shutdown", by: "quorum TestShutdownServesWorkUnderAQuorum",
		at: "internal/hold ofWork", old: "carriesOf(ctx, e) || underOf(ctx, e)", new: "carriesOf(ctx, e)"},
	{name: "a quorum's lease is work also for a server that it has lost", by: "quorum TestShutdownServesAQuorumOnlyWhereItIsHeld",
		at: "internal/hold Lease.lastsAt", old: "l.why() == nil", new: "(l.why() == nil || true)"},
	{name: "a wait for several locks is work under those that it has", by: "multilock TestShutdownEndsAWaitForSeveralLocks",
		at: "multilock MultiLock.take", old: "unwatch := context.AfterFunc(l.Context(held), func() { cancel(l.Err()) }); defer unwatch()",
		new: "held = l.Context(held)"},
	{name: "a lease on several locks is found whatever Client has it", by: "multilock TestMultiLock_LeaseFromIsOfTheSameClients",
		at: "multilock MultiLock.LeaseFrom", old: "m.reenters", new: "true || m.reenters"},
	{name: "a try of a quorum does not say that its context has ended", by: "quorum TestATryOfAQuorumThatItsContextEndsSaysSo",
		at: "quorum Quorum.rounds", old: "err = because(end, err)", new: "_ = end"},

	// Tokens.

	{name: "a mutex's token ahead of the clock is forgotten", by: "rlock TestTokensGrowAfterAClockThatWasAhead",
		at: "internal/lockhash/lua/token.lua advance", old: "math.floor((token - now) / 1000) +"},
	{name: "a writer's token ahead of the clock is forgotten", by: "rlock TestTokensGrowAfterAClockThatWasAhead",
		at: "rwlock/lua/lock.lua", old: "ARGV[4] + ahead", new: "ARGV[4] + 0 * ahead"},
	{name: "a quorum's token ahead of a server's clock is forgotten there", by: "quorum TestQuorum_TokenAheadOfTheClocks",
		at: "quorum/lua/raise.lua", old: "ARGV[3] + ahead", new: "ARGV[3] + 0 * ahead"},

	// Calls that no owner stands behind.

	{name: "a latch is open when Redis has lost its data", by: "latch TestLostDataOpensNothing",
		at: "latch/lua/look.lua", old: "end return {3, now}", new: "end return {1, now}"},
	{name: "a call that may have counted is told as refused", by: "semaphore TestARefusedReleaseMayHaveCounted",
		at: "internal/engine Ledger.Finish", old: "(goesOn || unheard)", new: "(goesOn || unheard && bounded.Err() != nil)"},
	{name: "the record of a call in doubt is gone when the clock is set", by: "semaphore TestACallInDoubtOutlivesAStepOfTheClock",
		at: "internal/engine ledgerLife", old: "24 * time.Hour", new: "10 * time.Minute"},
	{name: "a request for more permits than there are in all waits", by: "semaphore TestMoreThanThereAreInAll",
		at: "semaphore/lua/take.lua", old: "all > 0 and wanted > all and number <= all and 2 or"},
	{name: "a request for permits that are still to be made is refused", by: "semaphore TestInAllIsNotKnown",
		at: "semaphore/lua/take.lua", old: "all > 0 and wanted > all and number <= all", new: "wanted > all"},
	{name: "a take is undone into another semaphore", by: "semaphore TestAnUndoneTakeGivesNothingToAnother",
		at: "semaphore/lua/cancel.lua", old: "and (not since or since == result)"},

	// Stripes, and functions that wrap a Locker.

	{name: "a number of stripes is asked for once", by: "rlock TestALostNumberOfStripesIsRestored TestAnotherNumberOfStripesIsNoticed",
		at: "rlock Striped.agree", old: "now-time.Duration(last) >= askAgain", new: "now-time.Duration(last) >= 1000*askAgain"},
	{name: "a sync.Locker re-enters", by: ". TestASyncLockerDoesNotReenter",
		at: "internal/hold bare.Value", old: "{ return nil }", new: "&& false { return nil }"},
}
