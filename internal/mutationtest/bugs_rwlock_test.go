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
}
