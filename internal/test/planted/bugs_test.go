// These are the bugs that the first round planted.

package planted

import "slices"

// bugs are all bugs. Each part of the library has a file with its own bugs.
var bugs = slices.Concat(firstBugs, engineBugs, rwlockBugs, countedBugs, connBugs, sentinelBugs, interopBugs, leaseBugs, harnessBugs,
	quietBugs, onceBugs, barrierBugs, slotsBugs, leaderBugs, limiterBugs, shardsBugs, inspectBugs, formBugs, pauseBugs)

var firstBugs = []bug{

	// Leases: when a lease is over.

	{name: "a lease is not lost at its deadline while Redis is out of reach", by: "rlock TestALossSaysWhyAndAfterHowLong",
		at: "internal/hold hold.expire", old: "l.overAt(now)", new: "l.overAt(now.Add(-time.Minute))"},
	{name: "the deadline counts from the reply", quick: true, by: "rlock TestEachRequestOfAHoldMeetsEachFault",
		at: "internal/hold endAt", old: "sent.Add", new: "time.Now().Add"},
	{name: "the deadline of a renewal counts from its answer", by: "rlock TestTheDeadlineOfARenewalCountsFromItsRequest",
		at: "internal/hold hold.prolong", old: "end := endAt(r.Sent", new: "end := endAt(time.Now()"},
	{name: "a grant whose lease is over already is returned", by: "rlock TestInterleaving_GrantAnsweredAfterItsLease",
		at: "internal/hold acquisition.begin", old: "!now.Before(l.end()) || a.engine.Closing().Err() != nil",
		new: "a.engine.Closing().Err() != nil"},
	{name: "a lease that was lost goes on being renewed", by: "rlock TestInterleaving_RenewalExecutedAfterTheLocalLoss",
		at: "internal/hold hold.Renewal", old: "call.Until, call.AnyTime, call.Replicas = h.renewable(), true, n.replicas",
		new: "call.Replicas = n.replicas"},
	{name: "a fixed lease is renewed", by: "rlock TestFixedLease",
		at:  "internal/hold hold.add",
		old: "l.hold, l.fixed, l.length, l.token = h, s.Fixed, s.Length, h.token; if s.Fixed { l.rarely().deadline = endAt(a.grant.sent, s.Length).Add(-s.Grace) } else",
		new: "l.hold, l.length, l.token = h, s.Length, h.token; if s.Fixed { l.rarely().maxHold = a.grant.sent.Add(s.Length) };"},
	{name: "a renewal that too few replicas have counts", step: servers, by: "internal/test/faults TestReplicas_ARenewalThatTooFewAcknowledgeDoesNotCount",
		at:  "internal/hold hold.Renewed",
		old: "case r.Short: h.engine.CountRenewal(kind, telemetry.OutcomeFailed); h.renewalFailed(errs.NotReplicated.Error())"},
	{name: "the time that the machine slept is not looked at", by: "internal/renewal TestRanAhead",
		at: "internal/renewal ranAhead", old: "wall-monotonic > clockLead", new: "false"},

	// Requests that are lost, repeated or late.

	{name: "a request has no not-after", by: "internal/conn TestNotAfterBoundsALateRequest",
		at: "internal/conn/server request.claim", old: "clock.at(r.call.Deadline(now, window))", new: "clock.at(r.call.Deadline(now, window))+3600e6"},
	{name: "a late request is executed", by: "fairlock TestEnterScript",
		at: "internal/conn/call/lua/late.lua", old: "if late then", new: "if false then"},
	{name: "a clean-up ends before the last not-after", quick: true, by: "internal/engine TestSettleGoesOnUntilNothingCanComeLate",
		at: "internal/engine Engine.Settle", old: "left < 0 || Sleep(ctx, min(pause, left+time.Millisecond)) != nil", new: "left < 0 || pause > soon || Sleep(ctx, soon) != nil"},
	{name: "a mark stays without an expiry where two commands are refused", by: "internal/test/faults TestNothingStaysForEverWhicheverPairIsDenied",
		at: "rwlock/lua/marks.lua note", old: "redis.pcall('SET', KEYS[k], '', 'PX', 1)"},
	{name: "nobody is notified of permits that are made fewer", by: "internal/test/faults TestBadNewsIsForAll",
		at: "semaphore/lua/add.lua", old: "(free < number or free > 0 and free > number)", new: "(free > 0 and free > number)"},
	{name: "only the head hears that there is nothing to wait for", by: "internal/test/faults TestBadNewsIsForAll",
		at: "internal/line Lines.step", old: "l.endAll(me.line, err)"},
	{name: "a cancelled acquire is not cleaned up after", by: "rlock TestACallThatIsGivenUpChangesNothing",
		at: "internal/hold acquisition.fresh", old: "a.lateUntil != 0 || a.marked", new: "a.marked"},
	{name: "a repeated call counts twice", by: "latch TestCountDownCountsOnce",
		at: "internal/engine/lua/once.lua", old: "local again = last == ARGV[3]", new: "local again = false"},
	{name: "a call that has been overtaken counts", by: "semaphore TestCountingScripts",
		at: "internal/engine/lua/once.lua", old: "if last and tonumber(last) > tonumber(ARGV[3]) then", new: "if false then"},
	{name: "a release whose reply was lost says that it was not held", by: "rlock TestEachRequestOfAHoldMeetsEachFault",
		at: "internal/hold hold.outcome", old: "call.Status() == conn.Done || unheard && !h.concludes()", new: "call.Status() == conn.Done"},
	{name: "that a release was sent twice is forgotten when somebody is found to wait", quick: true, by: "rlock TestRelease_ReplyLostAndAwaited",
		at: "internal/hold hold.freeWhole", old: "unheard || again", new: "again || unheard && false"},
	{name: "a release as if nobody waited passes over a waiter", by: "fairlock TestFreeScript",
		at: "internal/lockhash/lua/free.lua", old: "if type(waiting) == 'number' and waiting > 0 then",
		new: "if type(waiting) == 'number' and waiting > 1 then"},
	{name: "a script that the server has forgotten is an error", by: "internal/conn TestScriptsAreLoadedWhereMissing",
		at: "internal/conn/fault Judge", old: `case HasCode(err, "NOSCRIPT "): return Unknown`, new: `case HasCode(err, "NOSCRIPT "): return Final`},

	// Holds: which owner has a hold, how often, and with which token.

	{name: "a renewal revives what was gone", quick: true, by: "rlock TestRenewScript",
		at: "internal/lockhash/lua/renew.lua", old: "return {0, now}", new: "redis.call('HSET', KEYS[1], ARGV[2], 1)"},
	{name: "a renewal shortens the time to live", by: "rlock TestRenewScript",
		at: "internal/lockhash/lua/renew.lua", old: "ttl = math.max(ttl, lease)", new: "ttl = lease"},
	{name: "a renewal shortens what is longer already", by: "rlock TestRenewScript",
		at: "internal/lockhash/lua/renew.lua", old: "ARGV[3], 'GT') == 1", new: "ARGV[3]) == 1"},
	{name: "a release takes a new number for a process that has a place", by: "fairlock TestReleaseScript",
		at: "internal/lockhash/lua/queue.lua join", old: "'NX'", new: "'CH'"},
	{name: "a renewal of many revives what was gone", by: "rlock TestRenewManyScript",
		at: "internal/lockhash/lua/renewmany.lua", old: "type(count) == 'string'",
		new: "type(count) == 'string' or not count and redis.call('HSET', KEYS[i], ARGV[i + 2], 1)"},
	{name: "a renewal of many only looks at a hold without expiry", by: "rlock TestRenewManyScript",
		at: "internal/lockhash/lua/renewmany.lua", old: "> 0 and", new: "> 0 and ttl >= 0 and"},
	{name: "a look at many ends a hold without expiry", by: "rlock TestRenewManyScript",
		at: "internal/lockhash/lua/renewmany.lua", old: "if lease > 0 and (ttl < lease or not knowsGT) then",
		new: "if ttl < lease or not knowsGT then"},
	{name: "a renewal of many does not hear that a replica takes no writes", step: servers, by: "rlock TestRenewManyOnAServerThatTakesNoWrites",
		at: "internal/lockhash/lua/renewmany.lua", old: "if lease > 0 and (ttl < lease or not knowsGT) then",
		new: "if lease > 0 and ttl < lease then"},
	{name: "a renewal of many is late with the last of its leases", by: "internal/engine TestAGroupIsLateWithTheFirstOfItsLeases",
		at: "internal/engine scratch.call", old: "m.Until.Before", new: "m.Until.After"},
	{name: "a renewal of many names each owner and those before it", by: "rlock TestManyRenewedInOneScript",
		at: "internal/engine scratch.addOwners", old: "from = end", new: "_ = end"},
	{name: "what is wrong with one key is told to its neighbours", by: "internal/engine TestEachOfAGroupHasItsOwnOutcome",
		at: "internal/engine group.answer", old: "!told || ttl < notHeld", new: "!told"},
	{name: "an answer that makes no sense means that all are renewed", by: "internal/engine TestAGroupThatIsRefusedIsRenewedOneByOne",
		at: "internal/engine group.answer", old: "told = told && err == nil && call.Status() == conn.Done",
		new: "told = err == nil && call.Status() == conn.Done"},
	{name: "a re-entry makes a hold", by: "rlock TestRecountScript",
		at: "internal/lockhash/lua/recount.lua", old: "return {0, now}", new: "redis.call('HSET', KEYS[1], ARGV[2], 1)"},
	{name: "a re-entry shortens the time to live", by: "rlock TestRecountScript",
		at: "internal/lockhash/lua/recount.lua", old: "math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[4]))", new: "tonumber(ARGV[4])"},
	{name: "a re-entry is counted relatively", by: "rlock TestRecountScript",
		at: "internal/lockhash/lua/recount.lua", old: "redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])",
		new: "redis.call('HINCRBY', KEYS[1], ARGV[2], 1)"},
	{name: "a try with the context of an ended lease makes a new owner", by: "rlock TestInterleaving_StaleLeaseContext",
		at: "internal/hold Request.run", old: "outer != nil", new: "outer != nil && (outer.why() == nil || !q.Try)"},
	{name: "the token is taken outside the script, by the client's clock", by: "rlock TestTokens",
		at: "internal/hold acquisition.begin", old: "a.grant.token", new: "time.Now().UnixMicro()"},
	{name: "a token may repeat", by: "rlock TestTokens",
		at: "internal/lockhash/lua/token.lua advance", old: "token = last + 1", new: "token = last"},
	{name: "tokens are counted, and begin anew when data are lost", by: "rwlock TestTokens",
		at: "rwlock/lua/lock.lua", old: "token = math.max(token + 1, now)", new: "token = token + 1"},
	{name: "a hold stands without an expiry where that fails", by: "fairlock TestEnterScript",
		at: "internal/lockhash/lua/enter.lua grant", old: "if type(redis.pcall('HDEL', KEYS[1], me)) == 'table' then", new: "if false then"},

	// Releases.

	{name: "a release tells nobody", by: "rlock TestHowAWaiterFindsARelease",
		at:  "internal/lockhash/lua/release.lua hand_over",
		old: "publish(ARGV[3], ARGV[5] .. ':' .. string.sub(head, 1, 36), string.sub(head, 38) .. ' ' .. token .. ' ' .. rest)"},
	{name: "a release frees whoever holds the lock", by: "fairlock TestFreeScript",
		at: "internal/lockhash/lua/free.lua", old: "redis.call('HDEL', KEYS[1], ARGV[2]) == 0",
		new: "redis.call('DEL', KEYS[1]) == 0"},
	{name: "a fair lock goes to the waiter that came last", by: "fairlock TestGrantedInTheOrderOfArrival",
		at: "internal/lockhash/lua/queue.lua first", old: "head, left = redis.call('ZRANGE', KEYS[3], '0', '0')[1], 0",
		new: "head, left = redis.call('ZRANGE', KEYS[3], -1, -1)[1], 0"},
	{name: "a release does not look at the owner", by: "rwlock TestScripts",
		at: "rwlock/lua/release.lua", old: "local held = redis.call('HEXISTS', KEYS[1], writer)", new: "local held = redis.call('EXISTS', KEYS[1])"},
	{name: "a release is told before it is done, and fails with the telling", by: "rwlock TestAReleaseThatCannotTellReleases",
		at: "rwlock/lua/release.lua", old: "if held == 1 then", new: "redis.call(ARGV[3], ARGV[4], '1') if held == 1 then"},
	{name: "renewal goes on until the release is answered", by: "rlock TestRelease_RenewalStopsFirst",
		at: "internal/hold Lease.release", old: "if l.ended != notYet",
		new: `if l.ended == notYet && h.count == 1 && !h.entering {
				h.mu.Unlock()
				err := h.free(h.engine.Grace(), 0)
				h.mu.Lock()
				begun := h.granted
				h.finish(l, byRelease)
				h.gone = true
				h.mu.Unlock()
				h.leave()
				l.tell()
				return h.engine.Age() - begun, err
			}
			if l.ended != notYet`},
	{name: "Close releases what is held, under work that goes on", by: "rlock TestClose",
		at: "internal/hold hold.announce", old: "{ h.tidy() }",
		new: "{ h.tidy() } else if h.seldom.lost.reason == telemetry.LostClosed { h.settle(0) }"},

	// Waiting.

	{name: "a waiter does not ask unless told", quick: true, by: "internal/line TestPollFindsAnUntoldRelease",
		at: "internal/line Held.nap", old: "PollBound - rand.N(PollBound/10)", new: "time.Hour - rand.N(PollBound/10)"},
	{name: "a subscription that is made anew wakes nobody", by: "internal/pubsub TestSignalOnceLive TestLostConnectionIsReplaced",
		at: "internal/pubsub node.confirm", old: "ch.signal()"},
	{name: "a dead subscription is not noticed", by: "internal/pubsub TestBlackHole",
		at: "internal/pubsub node.next", old: "return nil, 0, errSilent", new: "return nil, time.Hour, nil"},
	{name: "a waiter that asks for less passes others for ever", by: "internal/line TestHeavyWaiterIsNotPassedForEver",
		at: "internal/line overtaking.ahead", old: "time.Since(c.since) > patience", new: "time.Since(c.since) > 8*patience"},
	{name: "a release of permits wakes no waiter for more than one", by: "semaphore TestAReleaseWakesWhoeverItIsEnoughFor",
		at: "semaphore/lua/give.lua", old: "if free > 0 and free > number then", new: "if free > 0 and number <= 0 then"},

	// Queues.

	{name: "a dead head of the queue is not skipped", by: "fairlock TestTheDeadAreSkipped",
		at: "internal/lockhash/lua/queue.lua first", old: "if left > 0 then", new: "if left > -5000 then"},
	{name: "a release hands over to the dead", by: "fairlock TestTheDeadAreSkipped",
		at: "internal/lockhash/lua/release.lua hand_over", old: "hand_over()",
		new: "hand_over() head, left = redis.call('ZRANGE', KEYS[3], 0, 0)[1], 30000"},
	{name: "a waiter that gives up hands over a lock that another holds", by: "fairlock TestReleaseScript",
		at: "internal/lockhash/lua/release.lua hand_over", old: "if released == 0 and ttl ~= -2 or not head or left <= 0 then",
		new: "if not head or left <= 0 then"},
	{name: "the queue's keys run out while releases take places", by: "fairlock TestTheFirstToJoinInASecondPutsTheEndOfTheQueueOff",
		at: "internal/lockhash/lua/release.lua", old: "stays and head and left > 0", new: "true"},
	{name: "a place from before the clock was set back counts as one of this second",
		at: "internal/lockhash/lua/queue.lua coming", old: "== math.floor(now / 1000000)", new: ">= math.floor(now / 1000000)",
		by: "fairlock TestTheFirstToJoinInASecondPutsTheEndOfTheQueueOff"},
	{name: "a try passes the waiters", by: "fairlock TestTryLockDoesNotBarge",
		at: "internal/lockhash/lua/enter.lua", old: "local mine =", new: "local mine = keep == 0 or"},
	{name: "readers pass a writer that waits", by: "rwlock TestAWaitingWriterHoldsBackNewReaders",
		at: "rwlock/lua/rlock.lua", old: "first and first < since and not before(since, token, now)", new: "false"},
	{name: "a dead reader keeps writers out for as long as others read", by: "rwlock TestACrashedReaderBlocksAWriterNoLongerThanItsLease",
		at: "rwlock/lua/holders.lua others", old: "elseif ms ~= -2 then return ms", new: "else return math.max(ms, 1)"},

	// Permits.

	{name: "a late acquisition shortens a lease of permits", by: "semaphore TestALateAcquisitionDoesNotShortenALeaseThatWasExtended",
		at: "semaphore/lua/lease.lua", old: "ends[#ids] = math.max(expiry, tonumber(score))", new: "ends[#ids] = expiry"},
	{name: "a nested lock does not wait for its replicas", by: "rlock TestANestedLockWaitsForItsOwnReplicas",
		at: "internal/hold hold.enter", old: "call.Replicas = max(call.Replicas, a.settings.Replicas)"},
	{name: "renewals do not wait for the replicas of a nested lock", by: "rlock TestANestedLockWaitsForItsOwnReplicas",
		at: "internal/hold hold.needs", old: "n.replicas = max(n.replicas, l.rare.replicas)"},
	{name: "a try of a stripe waits for the number of stripes without end", by: "rlock TestAStripeWhoseNumberCannotBeAskedFor",
		at: "rlock Stripe.TryLock", old: "s.striped.agree(bounded)", new: "s.striped.agree(ctx)"},
	{name: "a read lock under a write lock is a try", by: "rwlock TestAReadLockUnderAWriteLockWaitsForRedis",
		at: "rwlock RWMutex.rlockUnder", old: "m.request(r, wait)", new: "m.request(r, false)"},
	{name: "a wait for several locks that ends between two attempts does not say so", by: "multilock TestAWaitThatEndsBetweenTwoAttemptsSaysSo",
		at: "multilock MultiLock.acquire", old: `err = m.failed(op, errs.Ended(ctx, fmt.Errorf("%w: %w", errs.Busy, end)))`},
	{name: "a bare context carries the leases on several locks", by: "multilock TestMultiLock_LeaseFromIsOfTheSameClients",
		at: "internal/hold bare.Value", old: "key.(anyLeaseKey)", new: "key.(leaseKey)"},
	{name: "permits are leased by the client's clock", by: "semaphore TestLeasingScripts",
		at: "semaphore/lua/lease.lua", old: "local ms = math.floor(now / 1000)", new: "local ms = math.floor(tonumber(ARGV[1]) / 1000)"},
	{name: "a permit whose lease is over is given back twice", by: "semaphore TestLeasingScripts",
		at: "semaphore/lua/release.lua", old: "failed('ZREM', redis.pcall('ZREM', KEYS[2], ids[i]))", new: "nil"},

	// Several locks, several servers.

	{name: "two of five are a quorum", by: "quorum TestQuorum_Masks",
		at: "quorum Quorum.majority", old: "len(q.members)/2 + 1", new: "min(len(q.members)/2+1, 2)"},
	{name: "a server that has lost its data counts", by: "quorum TestQuorum_Amnesia",
		at: "quorum Quorum.trusts", old: "(m.since == quorumBegan || m.since == dataLost) && m.age >= q.longest",
		new: "m.since == quorumBegan || m.since == dataLost"},
	{name: "the token of a quorum is not made known to a majority", by: "quorum TestQuorum_TokenGrowsOverMajorities",
		at: "quorum Quorum.grant", old: "at.member.raise(ctx, at.lease, h.token)", new: "nil"},
	{name: "several locks that were not all granted are kept", by: "multilock TestMultiLock_LeavesNothing",
		at: "multilock MultiLock.take", old: "giveBack(ctx, taken); return nil, m.failed(op, err)", new: "return nil, m.failed(op, err)"},
	{name: "several locks are taken in the order in which they were given", by: "multilock TestMultiLock_OppositeOrders",
		at: "multilock New", old: "strings.Compare", new: "0 * strings.Compare"},

	// The cohort: leases that are passed on within a process.

	{name: "a cohort has no end", by: "rlock TestCohort_Bounds",
		at: "internal/hold hold.makeHeir", old: "now > c.until", new: "false"},
	{name: "a hold is passed on more often than tokens were reserved", by: "rlock TestCohort_Bounds",
		at: "internal/hold hold.makeHeir", old: "c == nil || c.spare == 0", new: "c == nil"},
	{name: "a hold with an unanswered request is passed on", by: "rlock TestCohort_NotWithAnUnansweredRequest",
		at: "internal/hold hold.unsettled", old: "|| h.late != nil"},
	{name: "a lease that was over when it was passed on is released by nobody", by: "rlock TestCohort_PassedToOneThatStandsStill",
		at: "internal/hold Lease.disown", old: "l.hold.engine.Background(func() { _, _ = l.release(true) })"},
	{name: "what is passed on has the token of the one before", by: "rlock TestCohort_PassesWithoutRedis",
		at: "internal/hold hold.makeHeir", old: "h.token++"},
	{name: "tokens are reserved ahead of the clock", by: "fairlock TestReservedTokens",
		at: "internal/lockhash/lua/enter.lua grant", old: "reserved = new - token", new: "reserved = tonumber(ARGV[8])"},
	{name: "the lock is passed on to a waiter on other terms", by: "internal/line TestPassOnEqualTermsOnly",
		at: "internal/line Lines.Pass", old: "me.head.asking || me.terms != terms", new: "me.head.asking"},
	{name: "a waiter that gives up just as the lock is passed to it leaves it held", by: "internal/line TestPassedToAWaiterThatGivesUp",
		at: "internal/line Lines.gone", old: "outcome.Passed", new: "err != nil || outcome.Passed"},
	{name: "a waiter that gives up just as it becomes the head leaves its line without one", by: "internal/line TestFollowerGivesUp",
		at: "internal/line Lines.Wait", old: "return l.gone(me, busy(ctx.Err()))",
		new: "if len(me.turn) > 0 { return me.outcome, busy(ctx.Err()) }; return l.gone(me, busy(ctx.Err()))"},
	{name: "a place in the queue is left by a process that is done", by: "rlock TestCohort_PassesWithoutRedis",
		at: "internal/line Lines.Abandon", old: "q.seat.owner", new: "int64(0)"},
	{name: "a place that a late request may change is left to the next", by: "internal/line TestAHeadThatGivesUpLeavesTheSeat",
		at: "internal/line perProcess.leave", old: "me.place.doubt && !me.head.got || !waited && !holds", new: "!waited && !holds"},

	// Being handed the lock by a message.

	{name: "what was handed over counts from the message", by: "rlock TestHanded_ByTheMessageAlone TestHanded_ToldBeforeItEnds",
		at: "internal/hold acquisition.handed", old: "earlier(by.Until, now.Add(lasts(by.Left)))",
		new: "now.Add(lasts(a.resource.(Queueing).Keeps()))"},
	{name: "a message to another is taken for one's own", by: "rlock TestHanded_MessagesForOthers",
		at: "internal/line perProcess.handed", old: "by.Owner != q.seat.owner || !me.accept(by, q.seat.kept)",
		new: "!me.accept(by, q.seat.kept)"},
	{name: "a message from before the place was lost is believed", quick: true, by: "rlock TestHanded_MessageFromBefore",
		at: "internal/hold acquisition.placed", old: "!answer.Granted", new: "false"},
	{name: "a place is given up under a waiter that has asked in it", quick: true, by: "rlock TestSeat_AskedInBeforeTheReleaseIsAnswered",
		at: "internal/line Lines.Seated", old: "q.seat.state == seatTaking", new: "number == 0"},
	{name: "what was handed over is never made whole", by: "rlock TestHanded_ByTheMessageAlone",
		at: "internal/hold acquisition.renewAt", old: "granted + wholeAfter", new: "granted + a.settings.Length/3 + 0*wholeAfter"},
	{name: "a place is taken by a release that comes late, or again", quick: true, by: "fairlock TestReleaseScript",
		at: "internal/lockhash/lua/release.lua", old: "released == 1 and ARGV[9] ~= '' and now <= tonumber(ARGV[1])", new: "ARGV[9] ~= ''"},
	{name: "a place is kept that nobody wants when the release that took it is answered", by: "internal/line TestSeatedTooLate",
		at: "internal/line Lines.Seated", old: "q.dropped, orphan = slices.Delete(q.dropped, i, i+1), true",
		new: "q.dropped = slices.Delete(q.dropped, i, i+1)"},
	{name: "a redirection that has gone out of date is believed", step: servers,
		by: "internal/conn TestARedirectionThatIsOutOfDateIsNotBelieved",
		at: "internal/conn attempt.replied", old: ".denied:", new: ".denied && t.full:"},
}
