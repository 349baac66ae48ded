// These bugs are in the read/write lock and the queries.

package planted

var rwlockBugs = []bug{
	{name: "a key that has not come yet with its slot is taken for one that ran out", step: servers,
		at: "rwlock/lua/left.lua left", old: "if most == -2 or all and missing then", new: "if false then",
		by: "rwlock TestAReaderStaysInASlotOnTheMove TestAReaderStaysInWhenAWriterAsksInASlotOnTheMove"},
	{name: "a key is made where its slot goes to before it has come from where it was", step: servers,
		at: "rwlock/lua/left.lua left", old: "or all and missing", by: "rwlock TestANestedReaderLeavesInASlotOnTheMove"},
	{name: "read-write locks whose names share a token share the marks of their writers",
		at: "internal/keys Space.ForRW", old: "s.own(writersPrefix, name), Waiting:  s.own", new: "s.neighbour(writersPrefix, name), Waiting:  s.neighbour",
		by: "rwlock TestALockIsNotHeldUpByTheWaitersOfANameThatSharesItsToken TestTwoLocksWhoseNamesShareATokenAreTakenTogether"},
	{name: "read-write locks whose names share a channel stand in one line", by: "rwlock TestALockIsNotHeldUpByTheWaitersOfANameThatSharesItsToken",
		at: "rwlock asking.waiting", old: "b.line", new: "b.at.Channel"},
	{name: "a reader that joins a lock without end gives it one", by: "rwlock TestALockWithoutEndIsGivenNoneByItsReaders TestScripts",
		at: "rwlock/lua/rlock.lua", old: "if ttl ~= -1 and ttl < lease then", new: "if ttl < lease then"},
	{name: "a write lease that is over is kept by its reader", by: "rwlock TestAWriteLeaseThatIsOverIsNotKeptByItsReader",
		at: "internal/hold hold.announce", old: "h.outlived()"},
	{name: "a write lease that is over is given up no longer than it lasted", by: "rwlock TestAWriteLeaseThatEndedInAnOutageIsNotKeptByItsReader",
		at: "internal/hold hold.settle", old: "later(h.until(), h.keptUntil())", new: "h.until()"},
	{name: "the first page of readers is taken for all of them", step: servers, by: "rwlock TestAQueryLooksAtFewReadersAtATime",
		at: "rwlock RWMutex.walk", old: `cursor == "0"`, new: `cursor != ""`},
	{name: "the first page of waiters is taken for all of them", by: "fairlock TestWaitersAreListedSomeAtATime",
		at: "fairlock addWaiters", old: "call.Text(2)", new: `""`},
	{name: "a token ahead of a clock that was set back says who came before it", by: "rwlock TestTheOrderAfterTheClockWasSetBack",
		at: "rwlock/lua/marks.lua before", old: "return since * 1000 < token and token <= now", new: "return since * 1000 < token"},
	{name: "marks from before the clock was set back stand", by: "rwlock TestAMarkFromBeforeTheClockWasSetBackLosesNoPlace",
		at: "rwlock/lua/marks.lua purge", old: "for _, range in ipairs({{'-inf', dead}, {ahead, '+inf'}}) do",
		new: "for _, range in ipairs({{'-inf', dead}}) do"},
	{name: "a reader whose lock is cut short is renewed no sooner", by: "rwlock TestAReaderWhoseLockIsCutShortIsRenewedSoonerAndSaysSo",
		at: "internal/hold hold.cutShort", old: "h.renewAt = min(h.renewAt, h.engine.Age()+max(left/2, MinLease/3))"},
}
