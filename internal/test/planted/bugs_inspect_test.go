// These bugs are in what a Client says of itself, and in what an inspection and an error say of holders.

package planted

var inspectBugs = []bug{
	{
		name: "what a Client says stands without an expiry if a note is refused",
		file: "internal/engine/lua/present.lua",
		old:  "local expiry = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])\n",
		new:  "local expiry = #ARGV < 5 and redis.pcall('PEXPIRE', KEYS[1], ARGV[2])\n",
		pkg:  "internal/engine", tests: []string{"TestPresenceHasAnExpiryWhateverFails", "TestPresenceScripts"},
	},
	{
		name: "a write that comes late replaces a later one",
		file: "internal/engine/lua/present.lua",
		old:  "if version and tonumber(version) > tonumber(ARGV[3]) then",
		new:  "if false then",
		pkg:  "internal/engine", tests: []string{"TestPresenceScripts"},
	},
	{
		name: "the id of a Client stands in the name of its key",
		file: "internal/keys/client.go",
		old:  "return clientPrefix + hex.EncodeToString(sum[:16])",
		new:  "return clientPrefix + id + hex.EncodeToString(sum[:0])",
		pkg:  "internal/engine", tests: []string{"TestTheKeyOfAClientDoesNotTellItsID"},
	},
	{
		name: "a Client goes on saying who it is though it is idle",
		file: "internal/engine/presence.go",
		old:  "return !p.use.CompareAndSwap(kept, idle) && p.use.Load() == used",
		new:  "return true",
		pkg:  "internal/engine", tests: []string{"TestPresenceIsWrittenWhenTheClientIsUsed"},
	},
	{
		name: "a Client that holds something says nothing any more",
		file: "internal/engine/presence.go",
		old:  "|| p.e.registry.any() || p.e.Lines.Any() {",
		new:  "{",
		pkg:  ".", tests: []string{"TestAnIdentityOutlivesItsKey"},
	},
	{
		name: "a lease takes back the note of another",
		file: "internal/engine/presence.go",
		old:  "case n.text == \"\" && n.by != old.by:",
		new:  "case false:",
		pkg:  "internal/engine", tests: []string{"TestNotesComeAndGo"},
	},
	{
		name: "a note stays when its lease has ended",
		file: "internal/hold/end.go",
		old:  "	if e.noted {",
		new:  "	if false {",
		pkg:  ".", tests: []string{"TestANoteEndsWithItsLease"},
		quick: true,
	},
	{
		name: "Close removes the identity of a Client whose lock stays in Redis",
		file: "internal/engine/presence.go",
		old:  "there := p.written && !held && !p.stands",
		new:  "there := p.written",
		pkg:  ".", tests: []string{"TestAnIdentityStaysWhileALockStaysBehind"},
	},
	{
		name: "a waiter whose place has lapsed is shown",
		file: "internal/inspect/lua/inspect.lua",
		old:  "if till and tonumber(till) > tonumber(ms) then",
		new:  "if true then",
		pkg:  ".", tests: []string{"TestInspectShowsTheFirstHundredInTheQueue"},
	},
	{
		name: "an election whose record is another's shows that one as its leader",
		file: "internal/inspect/lua/inspect.lua",
		old:  "if owner and owner == holders[1] then",
		new:  "if owner then",
		pkg:  ".", tests: []string{"TestInspectALeaderWhoseRecordIsOld"},
	},
	{
		name: "a priority makes a candidate wait for 115 days",
		file: "internal/inspect/queue.go",
		old:  "return time.UnixMicro(number + int64(steps)*priorityStep)",
		new:  "return time.UnixMicro(number + int64(steps)*0)",
		pkg:  ".", tests: []string{"TestInspectLeader"},
	},
	{
		name: "the error of a busy lock takes an old token of Holdfast for the time of Java's grant",
		file: "internal/hold/busy.go",
		old:  "if token > 0 && token <= now && engine.IsClient(client) {",
		new:  "if token > 0 && token <= now && (engine.IsClient(client) || !b.Holder.IsZero()) {",
		pkg:  ".", tests: []string{"TestBusyErrorsSayWhoHolds"},
	},
	{
		name: "a broken token fails a try of a lock that is held",
		file: "rlock/lua/lock.lua",
		old:  "token = redis.pcall('GET', KEYS[2])",
		new:  "token = redis.call('GET', KEYS[2])",
		pkg:  "rlock", tests: []string{"TestLockScript"},
	},
}
