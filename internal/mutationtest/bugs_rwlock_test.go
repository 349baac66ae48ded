// Bugs of the read/write lock and the queries.

package mutationtest

var rwlockBugs = []bug{
	{
		name: "a key that has not come yet with its slot is taken for one that ran out",
		file: "rwlock/lua/holders.lua",
		old:  "  if most == -2 then\n    local there",
		new:  "  if false then\n    local there",
		pkg:  "rwlock",
		tests: []string{
			"TestAReaderStaysInWhenAnotherLeavesASlotOnTheMove",
			"TestAReaderStaysInWhenItsWriterLeavesASlotOnTheMove",
			"TestAReaderStaysInWhenAWriterAsksInASlotOnTheMove",
		},
	},
	{
		name: "read-write locks whose names share a token share the marks of their writers",
		file: "internal/keys/rw.go",
		old:  "own(writersPrefix, name)",
		new:  "neighbour(writersPrefix, name)",
		pkg:  "rwlock",
		tests: []string{
			"TestALockIsNotHeldUpByTheWaitersOfANameThatSharesItsToken",
			"TestTwoLocksWhoseNamesShareATokenAreTakenTogether",
		},
	},
	{
		name:  "read-write locks whose names share a channel stand in one line",
		file:  "rwlock/resource.go",
		old:   "engine.Waiting{Key: p.line,",
		new:   "engine.Waiting{Key: p.at.Channel,",
		pkg:   "rwlock",
		tests: []string{"TestALockIsNotHeldUpByTheWaitersOfANameThatSharesItsToken"},
	},
	{
		name:  "a reader that joins a lock without end gives it one",
		file:  "rwlock/lua/rlock.lua",
		old:   "if ttl ~= -1 and ttl < lease then",
		new:   "if ttl < lease then",
		pkg:   "rwlock",
		tests: []string{"TestALockWithoutEndIsGivenNoneByItsReaders", "TestScripts"},
	},
	{
		name:  "a write lease that is over is kept by its reader",
		file:  "lease/end.go",
		old:   "\th.outlived()\n",
		new:   "",
		pkg:   "rwlock",
		tests: []string{"TestAWriteLeaseThatIsOverIsNotKeptByItsReader"},
	},
	{
		name:  "a write lease that is over is given up no longer than it lasted",
		file:  "lease/release.go",
		old:   "time.Until(later(h.until(), h.keptUntil()))",
		new:   "time.Until(h.until())",
		pkg:   "rwlock",
		tests: []string{"TestAWriteLeaseThatEndedInAnOutageIsNotKeptByItsReader"},
	},
}
