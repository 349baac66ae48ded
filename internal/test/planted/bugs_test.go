// These are the bugs that the first round planted.

package planted

import "slices"

// bugs are all bugs. Each part of the library has a file with its own bugs.
var bugs = slices.Concat(firstBugs, engineBugs, rwlockBugs, countedBugs, connBugs, sentinelBugs, interopBugs, leaseBugs, harnessBugs,
	quietBugs, onceBugs, barrierBugs, leaderBugs, inspectBugs, formBugs)

var firstBugs = []bug{

	// Leases: when a lease is over.

	{
		name: "a lease is not lost at its deadline while Redis is out of reach",
		file: "internal/hold/end.go",
		old:  "lost := !now.Before(h.deadline)",
		new:  "lost := !now.Before(h.deadline.Add(time.Minute))",
		pkg:  "rlock", tests: []string{"TestUnreachableRedisIsLossAtTheDeadline"},
	},
	{
		name: "the deadline counts from the reply",
		file: "internal/hold/hold.go",
		old:  "return sent.Add(length - margin(length))",
		new:  "return time.Now().Add(length - margin(length))",
		pkg:  "rlock", tests: []string{"TestInterleaving_ResentAcquireAnsweredYours"},
		quick: true,
	},
	{
		name: "a grant whose lease is over already is returned",
		file: "internal/hold/acquire.go",
		old:  "if now := time.Now(); !now.Before(l.end()) || a.engine.Closing().Err() != nil || a.turnedAway() {",
		new:  "if now := time.Now(); a.engine.Closing().Err() != nil || a.turnedAway() {",
		pkg:  "rlock", tests: []string{"TestInterleaving_GrantAnsweredAfterItsLease"},
	},
	{
		name: "a lease that was lost goes on being renewed",
		file: "internal/hold/renew.go",
		old:  "call.Until, call.AnyTime, call.Replicas = h.deadline, true, int(h.replicas)",
		new:  "call.Replicas = int(h.replicas)",
		pkg:  "rlock", tests: []string{"TestInterleaving_RenewalExecutedAfterTheLocalLoss"},
	},
	{
		name: "a fixed lease is renewed",
		file: "internal/hold/acquire.go",
		old: `l.hold, l.fixed, l.length, l.token = h, s.Fixed, s.Length, h.token
	if s.Fixed {
		l.rarely().deadline = endAt(a.grant.sent, s.Length)
	} else if due`,
		new: `l.hold, l.length, l.token = h, s.Length, h.token
	if s.Fixed {
		l.rarely().maxHold = a.grant.sent.Add(s.Length)
	}
	if due`,
		pkg: "rlock", tests: []string{"TestFixedLease"},
	},
	{
		name: "a renewal that too few replicas have counts",
		file: "internal/hold/renew.go",
		old:  "\tcase r.Short:\n\t\th.engine.CountRenewal(kind, telemetry.OutcomeFailed)\n\t\th.renewalFailed(errs.NotReplicated.Error())\n",
		new:  "",
		pkg:  "internal/test/faults", tests: []string{"TestReplicas_ARenewalThatTooFewAcknowledgeDoesNotCount"},
	},
	{
		name: "the time that the machine slept is not looked at",
		file: "internal/renewal/clock.go",
		old:  "return wall-monotonic > clockLead",
		new:  "return false",
		pkg:  "internal/renewal", tests: []string{"TestRanAhead"},
	},

	// Requests that are lost, repeated or late.

	{
		name: "a request has no not-after",
		file: "internal/conn/request.go",
		old:  "r.sent, r.notAfter = now, clock.at(r.call.deadline(now))",
		new:  "r.sent, r.notAfter = now, clock.at(r.call.deadline(now))+3600e6",
		pkg:  "internal/conn", tests: []string{"TestNotAfterBoundsALateRequest"},
	},
	{
		name: "a late request is executed",
		file: "internal/conn/lua/late.lua",
		old:  "if now > tonumber(ARGV[1]) then",
		new:  "if false then",
		pkg:  "fairlock", tests: []string{"TestEnterScript"},
	},
	{
		name: "a clean-up ends before the last not-after",
		file: "internal/engine/settle.go",
		old:  "if left < 0 || Sleep(ctx, left+time.Millisecond) != nil {",
		new:  "if left < time.Hour {",
		pkg:  "internal/engine", tests: []string{"TestSettleGoesOnUntilNothingCanComeLate"},
		quick: true,
	},
	{
		name: "a cancelled acquire is not cleaned up after",
		file: "internal/hold/acquire.go",
		old:  "if a.lateUntil != 0 || a.marked {",
		new:  "if a.marked {",
		pkg:  "rlock", tests: []string{"TestInterleaving_AcquireExecutedAfterItsCleanUp"},
	},
	{
		name: "a repeated call counts twice",
		file: "internal/engine/lua/once.lua",
		old:  "local again = last == ARGV[3]",
		new:  "local again = false",
		pkg:  "latch", tests: []string{"TestCountDownCountsOnce"},
	},
	{
		name: "a call that has been overtaken counts",
		file: "internal/engine/lua/once.lua",
		old:  "if last and tonumber(last) > tonumber(ARGV[3]) then",
		new:  "if false then",
		pkg:  "semaphore", tests: []string{"TestCountingScripts"},
	},
	{
		name: "a release whose reply was lost says that it was not held",
		file: "internal/hold/release.go",
		old:  "case call.Status() == conn.Done || unheard && !h.concludes():",
		new:  "case call.Status() == conn.Done:",
		pkg:  "rlock", tests: []string{"TestRelease_ReplyLost"},
	},
	{
		name: "that a release was sent twice is forgotten when somebody is found to wait",
		file: "internal/hold/release.go",
		old:  "return h.outcome(call, err, unheard || again)",
		new:  "return h.outcome(call, err, again || unheard && false)",
		pkg:  "rlock", tests: []string{"TestRelease_ReplyLostAndAwaited"},
		quick: true,
	},
	{
		name: "a release as if nobody waited passes over a waiter",
		file: "internal/lockhash/lua/free.lua",
		old:  "waiting > 0 then",
		new:  "waiting > 1 then",
		pkg:  "fairlock", tests: []string{"TestFreeScript"},
	},
	{
		name: "a script that the server has forgotten is an error",
		file: "internal/conn/errors.go",
		old:  "return unknown",
		new:  "return final",
		pkg:  "internal/conn", tests: []string{"TestScriptsAreLoadedWhereMissing"},
	},

	// Holds: which owner has a hold, how often, and with which token.

	{
		name: "a renewal revives what was gone",
		file: "internal/lockhash/lua/renew.lua",
		old:  "== 0 then\n  return {0, now}\nend",
		new:  "== 0 then\n  redis.call('HSET', KEYS[1], ARGV[2], 1)\nend",
		pkg:  "rlock", tests: []string{"TestRenewScript"},
		quick: true,
	},
	{
		name: "a renewal shortens the time to live",
		file: "internal/lockhash/lua/renew.lua",
		old:  "ttl = math.max(ttl, lease)",
		new:  "ttl = lease",
		pkg:  "rlock", tests: []string{"TestRenewScript"},
	},
	{
		name: "a renewal of many revives what was gone",
		file: "internal/lockhash/lua/renewmany.lua",
		old:  "if held == 1 then",
		new:  "if held == 1 or held == 0 and redis.call('HSET', KEYS[i], client .. ARGV[i + 3], 1) then",
		pkg:  "rlock", tests: []string{"TestRenewManyScript"},
	},
	{
		name: "a renewal of many only looks at a hold without expiry",
		file: "internal/lockhash/lua/renewmany.lua",
		old:  "if lease > 0 and (ttl < lease or not knowsGT) then",
		new:  "if lease > 0 and ttl >= 0 and (ttl < lease or not knowsGT) then",
		pkg:  "rlock", tests: []string{"TestRenewManyScript"},
	},
	{
		name: "a look at many ends a hold without expiry",
		file: "internal/lockhash/lua/renewmany.lua",
		old:  "if lease > 0 and (ttl < lease or not knowsGT) then",
		new:  "if ttl < lease or not knowsGT then",
		pkg:  "rlock", tests: []string{"TestRenewManyScript"},
	},
	{
		name: "a renewal of many does not hear that a replica takes no writes",
		file: "internal/lockhash/lua/renewmany.lua",
		old:  "(ttl < lease or not knowsGT)",
		new:  "ttl < lease",
		pkg:  "rlock", tests: []string{"TestRenewManyOnAServerThatTakesNoWrites"},
	},
	{
		name: "a renewal of many is late with the last of its leases",
		file: "internal/engine/group.go",
		old:  "if m.Until.Before(call.Until) {",
		new:  "if m.Until.After(call.Until) {",
		pkg:  "internal/engine", tests: []string{"TestAGroupIsLateWithTheFirstOfItsLeases"},
	},
	{
		name: "what is wrong with one key is told to its neighbours",
		file: "internal/engine/group.go",
		old:  "if !told || ttl < notHeld {",
		new:  "if !told {",
		pkg:  "internal/engine", tests: []string{"TestEachOfAGroupHasItsOwnOutcome"},
	},
	{
		name: "an answer that makes no sense means that all are renewed",
		file: "internal/engine/group.go",
		old:  " && g.understands(call)",
		new:  "",
		pkg:  "internal/engine", tests: []string{"TestAGroupThatIsRefusedIsRenewedOneByOne"},
	},
	{
		name: "a re-entry makes a hold",
		file: "internal/lockhash/lua/recount.lua",
		old:  "== 0 then\n  return {0, now}\nend",
		new:  "== 0 then\n  redis.call('HSET', KEYS[1], ARGV[2], 1)\nend",
		pkg:  "rlock", tests: []string{"TestRecountScript"},
	},
	{
		name: "a re-entry shortens the time to live",
		file: "internal/lockhash/lua/recount.lua",
		old:  "local ttl = math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[4]))",
		new:  "local ttl = tonumber(ARGV[4])",
		pkg:  "rlock", tests: []string{"TestRecountScript"},
	},
	{
		name: "a re-entry is counted relatively",
		file: "internal/lockhash/lua/recount.lua",
		old:  "redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])",
		new:  "redis.call('HINCRBY', KEYS[1], ARGV[2], 1)",
		pkg:  "rlock", tests: []string{"TestRecountScript"},
	},
	{
		name: "a try with the context of an ended lease makes a new owner",
		file: "internal/hold/acquire.go",
		old:  "case outer != nil:\n\t\ta.course.reentrant",
		new:  "case outer != nil && (outer.why() == nil || !q.Try):\n\t\ta.course.reentrant",
		pkg:  "rlock", tests: []string{"TestInterleaving_StaleLeaseContext"},
	},
	{
		name: "the token is taken outside the script, by the client's clock",
		file: "internal/hold/acquire.go",
		old:  "token: a.grant.token,",
		new:  "token: time.Now().UnixMicro(),",
		pkg:  "rlock", tests: []string{"TestTokens"},
	},
	{
		name: "a token may repeat",
		file: "internal/lockhash/lua/token.lua",
		old:  "    token = last + 1\n",
		new:  "    token = last\n",
		pkg:  "fairlock", tests: []string{"TestTokens"},
	},
	{
		name: "tokens are counted, and begin anew when data are lost",
		file: "rwlock/lua/lock.lua",
		old:  "token = math.max(token + 1, now)",
		new:  "token = token + 1",
		pkg:  "rwlock", tests: []string{"TestTokens"},
	},
	{
		name: "a hold stands without an expiry where that fails",
		file: "internal/lockhash/lua/enter.lua",
		old:  "redis.call('HDEL', KEYS[1], me)\n      return expiry",
		new:  "return expiry",
		pkg:  "fairlock", tests: []string{"TestScriptsThatFailMidway"},
	},

	// Releases.

	{
		name: "a release tells nobody",
		file: "internal/lockhash/lua/release.lua",
		old: `  publish(ARGV[3], ARGV[5] .. ':' .. string.sub(head, 1, 36),
    string.sub(head, 38) .. ' ' .. token .. ' ' .. left)
`,
		new: "",
		pkg: "rlock", tests: []string{"TestWokenByTheMessage"},
	},
	{
		name: "a release frees whoever holds the lock",
		file: "internal/lockhash/lua/free.lua",
		old:  "local released = redis.call('HDEL', KEYS[1], ARGV[2])",
		new:  "local released = redis.call('DEL', KEYS[1])",
		pkg:  "fairlock", tests: []string{"TestFreeScript"},
	},
	{
		name: "a fair lock goes to the waiter that came last",
		file: "internal/lockhash/lua/queue.lua",
		old:  "head, left = redis.call('ZRANGE', KEYS[3], 0, 0)[1], 0",
		new:  "head, left = redis.call('ZRANGE', KEYS[3], -1, -1)[1], 0",
		pkg:  "fairlock", tests: []string{"TestGrantedInTheOrderOfArrival"},
	},
	{
		name: "a release does not look at the owner",
		file: "rwlock/lua/release.lua",
		old:  "local held = redis.call('HEXISTS', KEYS[1], writer)",
		new:  "local held = redis.call('EXISTS', KEYS[1])",
		pkg:  "rwlock", tests: []string{"TestScripts"},
	},
	{
		name: "a release is told before it is done, and fails with the telling",
		file: "rwlock/lua/release.lua",
		old:  "local held = redis.call('HEXISTS', KEYS[1], writer)",
		new:  "local held = redis.call('HEXISTS', KEYS[1], writer)\nredis.call(ARGV[3], ARGV[4], '1')",
		pkg:  "rwlock", tests: []string{"TestAReleaseThatCannotTellReleases"},
	},
	{
		name: "renewal goes on until the release is answered",
		file: "internal/hold/release.go",
		old:  "\th := l.hold\n\th.mu.Lock()\n\tif l.ended != notYet {\n\t\treturn telemetry.StillHeld, l.releaseOver()",
		new: `	h := l.hold
	h.mu.Lock()
	if l.ended == notYet && h.count == 1 && !h.entering {
		h.mu.Unlock()
		err := h.free(h.engine.Grace(), 0)
		h.mu.Lock()
		e, begun := h.finish(l, byRelease), h.granted
		h.gone = true
		h.mu.Unlock()
		h.leave()
		e.tell()
		return h.engine.Age() - begun, err
	}
	if l.ended != notYet {
		return telemetry.StillHeld, l.releaseOver()`,
		pkg: "rlock", tests: []string{"TestRelease_RenewalStopsFirst"},
	},
	{
		name: "Close releases what is held, under work that goes on",
		file: "internal/hold/end.go",
		old:  "\t\th.tidy()\n\t}\n",
		new:  "\t\th.tidy()\n\t} else if h.seldom.lost.reason == telemetry.LostClosed {\n\t\th.settle(0)\n\t}\n",
		pkg:  "rlock", tests: []string{"TestClose"},
	},

	// Waiting.

	{
		name: "a waiter does not ask unless told",
		file: "internal/line/wait.go",
		old:  "poll := PollBound - rand.N(PollBound/10)",
		new:  "poll := time.Hour - rand.N(PollBound/10)",
		pkg:  "internal/line", tests: []string{"TestPollFindsAnUntoldRelease"},
		quick: true,
	},
	{
		name: "a subscription that is made anew wakes nobody",
		file: "internal/pubsub/reader.go",
		old:  "ch.lost, ch.denied, ch.alone = false, false, false\n\tch.signal()",
		new:  "ch.lost, ch.denied, ch.alone = false, false, false",
		pkg:  "internal/pubsub", tests: []string{"TestSignalOnceLive", "TestLostConnectionIsReplaced"},
	},
	{
		name: "a dead subscription is not noticed",
		file: "internal/pubsub/node.go",
		old:  "return nil, 0, errSilent",
		new:  "return nil, time.Hour, nil",
		pkg:  "internal/pubsub", tests: []string{"TestBlackHole"},
	},
	{
		name: "a waiter that asks for less passes others for ever",
		file: "internal/line/overtaking.go",
		old:  "time.Since(c.since) > patience",
		new:  "time.Since(c.since) > 8*patience",
		pkg:  "internal/line", tests: []string{"TestHeavyWaiterIsNotPassedForEver"},
	},
	{
		name: "a release of permits wakes no waiter for more than one",
		file: "semaphore/lua/give.lua",
		old:  "if free > 0 and free > number then",
		new:  "if free > 0 and number <= 0 then",
		pkg:  "semaphore", tests: []string{"TestAReleaseWakesWhoeverItIsEnoughFor"},
	},

	// Queues.

	{
		name: "a dead head of the queue is not skipped",
		file: "internal/lockhash/lua/queue.lua",
		old:  "    if left > 0 then\n      break\n    end\n    leave(head)",
		new:  "    if left > -5000 then\n      break\n    end\n    leave(head)",
		pkg:  "fairlock", tests: []string{"TestTheDeadAreSkipped"},
	},
	{
		name: "a release hands over to the dead",
		file: "internal/lockhash/lua/release.lua",
		old:  "if released == 0 and ttl ~= -2 or not head or left <= 0 then",
		new:  "head, left = redis.call('ZRANGE', KEYS[3], 0, 0)[1], 30000\n  if released == 0 and ttl ~= -2 or not head or left <= 0 then",
		pkg:  "fairlock", tests: []string{"TestTheDeadAreSkipped"},
	},
	{
		name: "a waiter that gives up hands over a lock that another holds",
		file: "internal/lockhash/lua/release.lua",
		old:  "if released == 0 and ttl ~= -2 or not head or left <= 0 then",
		new:  "if not head or left <= 0 then",
		pkg:  "fairlock", tests: []string{"TestReleaseScript"},
	},
	{
		name: "the queue's keys run out while releases take places",
		file: "internal/lockhash/lua/release.lua",
		old:  "stays and head and left > 0)",
		new:  "true)",
		pkg:  "fairlock", tests: []string{"TestTheFirstToJoinInASecondPutsTheEndOfTheQueueOff"},
	},
	{
		name: "a place from before the clock was set back counts as one of this second",
		file: "internal/lockhash/lua/queue.lua",
		old:  "math.floor(last / 1000000) == math.floor(now / 1000000)",
		new:  "math.floor(last / 1000000) >= math.floor(now / 1000000)",
		pkg:  "fairlock", tests: []string{"TestTheFirstToJoinInASecondPutsTheEndOfTheQueueOff"},
	},
	{
		name: "a try passes the waiters",
		file: "internal/lockhash/lua/enter.lua",
		old:  "local mine = not head or head == me",
		new:  "local mine = keep == 0 or not head or head == me",
		pkg:  "fairlock", tests: []string{"TestTryLockDoesNotBarge"},
	},
	{
		name: "readers pass a writer that waits",
		file: "rwlock/lua/rlock.lua",
		old:  "if first and first < since and not before(since, token, now) then",
		new:  "if false then",
		pkg:  "rwlock", tests: []string{"TestAWaitingWriterHoldsBackNewReaders"},
	},
	{
		name: "a dead reader keeps writers out for as long as others read",
		file: "rwlock/lua/holders.lua",
		old:  "elseif ms ~= -2 then\n          return ms",
		new:  "else\n          return math.max(ms, 1)",
		pkg:  "rwlock", tests: []string{"TestACrashedReaderBlocksAWriterNoLongerThanItsLease"},
	},

	// Permits.

	{
		name: "a late acquisition shortens a lease of permits",
		file: "semaphore/lua/lease.lua",
		old:  "    ends[#ids] = math.max(expiry, tonumber(score))\n",
		new:  "    ends[#ids] = expiry\n",
		pkg:  "semaphore", tests: []string{"TestALateAcquisitionDoesNotShortenALeaseThatWasExtended"},
	},
	{
		name: "a nested lock does not wait for its replicas",
		file: "internal/hold/enter.go",
		old:  "	call.Replicas = max(call.Replicas, a.settings.Replicas)\n",
		new:  "",
		pkg:  "rlock", tests: []string{"TestANestedLockWaitsForItsOwnReplicas"},
	},
	{
		name: "renewals do not wait for the replicas of a nested lock",
		file: "internal/hold/enter.go",
		old:  "	h.replicas = max(h.replicas, int32(a.settings.Replicas))\n",
		new:  "",
		pkg:  "rlock", tests: []string{"TestANestedLockWaitsForItsOwnReplicas"},
	},
	{
		name: "a try of a stripe waits for the number of stripes without end",
		file: "rlock/striped.go",
		old:  "s.striped.agree(bounded)",
		new:  "s.striped.agree(ctx)",
		pkg:  "rlock", tests: []string{"TestATryOfAStripeEndsThoughRedisIsOutOfReach"},
	},
	{
		name: "a read lock under a write lock is a try",
		file: "rwlock/rwlock.go",
		old:  "	request := m.request(r, wait)\n",
		new:  "	request := m.request(r, false)\n",
		pkg:  "rwlock", tests: []string{"TestAReadLockUnderAWriteLockWaitsForRedis"},
	},
	{
		name: "a wait for several locks that ends between two attempts does not say so",
		file: "multilock/multilock.go",
		old:  "			err = m.failed(op, errs.Ended(ctx, fmt.Errorf(\"%w: %w\", errs.Busy, end)))\n",
		new:  "",
		pkg:  "multilock", tests: []string{"TestAWaitThatEndsBetweenTwoAttemptsSaysSo"},
	},
	{
		name: "a bare context carries the leases on several locks",
		file: "internal/hold/context.go",
		old:  "	if _, ok := key.(LeaseKey); ok {\n",
		new:  "	if _, ok := key.(leaseKey); ok {\n",
		pkg:  "multilock", tests: []string{"TestABareContextCarriesNoLeaseOnSeveralLocks"},
	},
	{
		name: "permits are leased by the client's clock",
		file: "semaphore/lua/lease.lua",
		old:  "local ms = math.floor(now / 1000)",
		new:  "local ms = math.floor(tonumber(ARGV[1]) / 1000)",
		pkg:  "semaphore", tests: []string{"TestLeasingScripts"},
	},
	{
		name: "a permit whose lease is over is given back twice",
		file: "semaphore/lua/release.lua",
		old:  "local reply = redis.pcall('ZREM', KEYS[2], ids[i])\n",
		new:  "local reply = 1\n",
		pkg:  "semaphore", tests: []string{"TestLeasingScripts"},
	},

	// Several locks, several servers.

	{
		name: "two of five are a quorum",
		file: "multilock/quorum.go",
		old:  "return len(q.members)/2 + 1",
		new:  "return min(len(q.members)/2+1, 2)",
		pkg:  "multilock", tests: []string{"TestQuorum_Masks"},
	},
	{
		name: "a server that has lost its data counts",
		file: "multilock/member.go",
		old:  "(m.since == fresh || m.since == lost) && m.age >= q.longest",
		new:  "m.since == fresh || m.since == lost",
		pkg:  "multilock", tests: []string{"TestQuorum_Amnesia"},
	},
	{
		name: "the token of a quorum is not made known to a majority",
		file: "multilock/round.go",
		old:  "return at.member.raise(ctx, at.lease, h.token)",
		new:  "return nil",
		pkg:  "multilock", tests: []string{"TestQuorum_TokenGrowsOverMajorities"},
	},
	{
		name: "several locks that were not all granted are kept",
		file: "multilock/multilock.go",
		old:  "\t\tgiveBack(ctx, taken)\n\t\treturn nil, m.failed(op, err)",
		new:  "\t\treturn nil, m.failed(op, err)",
		pkg:  "multilock", tests: []string{"TestMultiLock_TryLeavesNothing"},
	},
	{
		name: "several locks are taken in the order in which they were given",
		file: "multilock/multilock.go",
		old:  "slices.SortFunc(m.members, func(a, b member) int { return strings.Compare(a.place, b.place) })",
		new:  "slices.SortFunc(m.members, func(a, b member) int { return 0 * strings.Compare(a.place, b.place) })",
		pkg:  "multilock", tests: []string{"TestMultiLock_OppositeOrders"},
	},

	// The cohort: leases that are passed on within a process.

	{
		name: "a cohort has no end",
		file: "internal/hold/cohort.go",
		old:  " || now > c.until {",
		new:  " {",
		pkg:  "rlock", tests: []string{"TestCohort_Bounds"},
	},
	{
		name: "a hold is passed on more often than tokens were reserved",
		file: "internal/hold/cohort.go",
		old:  "c == nil || c.spare == 0 ||",
		new:  "c == nil ||",
		pkg:  "rlock", tests: []string{"TestCohort_Bounds"},
	},
	{
		name: "a hold with an unanswered request is passed on",
		file: "internal/hold/cohort.go",
		old:  " || h.late != nil || h.entering ||",
		new:  " || h.entering ||",
		pkg:  "rlock", tests: []string{"TestCohort_NotWithAnUnansweredRequest"},
	},
	{
		name: "a lease that was over when it was passed on is released by nobody",
		file: "internal/hold/cohort.go",
		old:  "\tl.hold.engine.Background(func() { _, _ = l.release() }) // what it says is nobody's to hear\n",
		new:  "",
		pkg:  "rlock", tests: []string{"TestCohort_PassedToOneThatStandsStill"},
	},
	{
		name: "what is passed on has the token of the one before",
		file: "internal/hold/cohort.go",
		old:  "\th.token++\n",
		new:  "",
		pkg:  "rlock", tests: []string{"TestCohort_PassesWithoutRedis"},
	},
	{
		name: "tokens are reserved ahead of the clock",
		file: "internal/lockhash/lua/enter.lua",
		old:  "reserved = new - token",
		new:  "reserved = tonumber(ARGV[8])",
		pkg:  "fairlock", tests: []string{"TestReservedTokens"},
	},
	{
		name: "the lock is passed on to a waiter on other terms",
		file: "internal/line/pass.go",
		old:  "if me.head.asking || me.terms != terms {",
		new:  "if me.head.asking {",
		pkg:  "internal/line", tests: []string{"TestPassOnEqualTermsOnly"},
	},
	{
		name: "a waiter that gives up just as the lock is passed to it leaves it held",
		file: "internal/line/wait.go",
		old:  "if outcome.Passed == nil {",
		new:  "if err != nil || outcome.Passed == nil {",
		pkg:  "internal/line", tests: []string{"TestPassedToAWaiterThatGivesUp"},
	},
	{
		name: "a waiter that gives up just as it becomes the head leaves its line without one",
		file: "internal/line/wait.go",
		old:  "		case <-ctx.Done():\n			return l.gone(w, me, busy(ctx.Err()))",
		new: "		case <-ctx.Done():\n			if len(me.turn) > 0 {\n				return me.outcome, busy(ctx.Err())\n			}\n" +
			"			return l.gone(w, me, busy(ctx.Err()))",
		pkg: "internal/line", tests: []string{"TestFollowerGivesUp"},
	},
	{
		name: "a place in the queue is left by a process that is done",
		file: "internal/line/seat.go",
		old:  "\tabandoned := q.seat.owner\n",
		new:  "\tabandoned := int64(0)\n",
		pkg:  "rlock", tests: []string{"TestCohort_PassesWithoutRedis"},
	},
	{
		name: "a place that a late request may change is left to the next",
		file: "internal/line/perprocess.go",
		old:  "(me.place.doubt && !me.head.got || !waited && !holds)",
		new:  "(!waited && !holds)",
		pkg:  "internal/line", tests: []string{"TestAHeadThatGivesUpLeavesTheSeat"},
	},

	// Being handed the lock by a message.

	{
		name: "what was handed over counts from the message",
		file: "internal/hold/queueing.go",
		old:  "until := earlier(by.Until, now.Add(lasts(by.Left)))",
		new:  "until := now.Add(lasts(a.resource.(Queueing).Keeps()))",
		pkg:  "rlock", tests: []string{"TestHanded_ByTheMessageAlone", "TestHanded_ToldBeforeItEnds"},
	},
	{
		name: "a message to another is taken for one's own",
		file: "internal/line/perprocess.go",
		old:  "if owner != q.seat.owner || !me.accept(",
		new:  "if !me.accept(",
		pkg:  "rlock", tests: []string{"TestHanded_MessagesForOthers"},
	},
	{
		name: "a message from before the place was lost is believed",
		file: "internal/hold/queueing.go",
		old:  "if !answer.Granted && slices.Contains(answer.Nudge, a.owner.String()) {",
		new:  "if false && slices.Contains(answer.Nudge, a.owner.String()) {",
		pkg:  "rlock", tests: []string{"TestHanded_MessageFromBefore"},
		quick: true,
	},
	{
		name: "a place is given up under a waiter that has asked in it",
		file: "internal/line/seat.go",
		old:  "if orphan = number == 0 && !q.seat.asked ||",
		new:  "if orphan = number == 0 ||",
		pkg:  "rlock", tests: []string{"TestSeat_AskedInBeforeTheReleaseIsAnswered"},
		quick: true,
	},
	{
		name: "what was handed over is never made whole",
		file: "internal/hold/acquire.go",
		old:  "return granted + wholeAfter",
		new:  "return granted + a.settings.Length/3 + 0*wholeAfter",
		pkg:  "rlock", tests: []string{"TestHanded_ByTheMessageAlone"},
	},
	{
		name: "a place is taken by a release that comes late, or again",
		file: "internal/lockhash/lua/release.lua",
		old:  "if released == 1 and ARGV[9] ~= '' and now <= tonumber(ARGV[1]) then",
		new:  "if ARGV[9] ~= '' then",
		pkg:  "fairlock", tests: []string{"TestReleaseScript"},
		quick: true,
	},
	{
		name: "a place is kept that nobody wants when the release that took it is answered",
		file: "internal/line/seat.go",
		old:  "q.dropped, orphan = slices.Delete(q.dropped, i, i+1), true",
		new:  "q.dropped = slices.Delete(q.dropped, i, i+1)",
		pkg:  "internal/line", tests: []string{"TestSeatedTooLate"},
	},
	{
		name: "a redirection that has gone out of date is believed",
		file: "internal/conn/run.go",
		old:  "status == Refused && asking && !t.denied",
		new:  "status == Refused && asking && !t.denied && t.full",
		pkg:  "internal/conn", tests: []string{"TestCluster"},
	},
}
