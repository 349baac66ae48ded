// These bugs are in pauses.

package planted

var pauseBugs = []bug{
	{name: "a tick is taken while its name is paused", quick: true, by: ". TestPause_Tick",
		at: "once/lua/tick.lua", old: "if pause and string.sub(pause, 1, 1) ~= '-'", new: "if false and string.sub(pause, 1, 1) ~= '-'"},
	{name: "a tick that is taken is not reported as taken once its name is paused", by: "once TestScripts",
		at: "once/lua/tick.lua", old: "~= '-' and redis.call('GET', KEYS[1]) ~= ARGV[2] then", new: "~= '-' then"},
	{name: "a leader goes on though its name is paused", by: ". TestPause_Leader",
		at: "leader Term.Try", old: "t.end(err)", new: "_ = err"},
	{name: "a term begins though its name is paused", by: ". TestPause_Leader",
		at: "leader/lua/tell.lua", old: "if pause and string.sub(pause, 1, 1) ~= '-' then", new: "if pause and redis.call('HEXISTS', KEYS[2], 'owner') == 1 and string.sub(pause, 1, 1) ~= '-' then"},
	{name: "a Pause that is given up forgets the one that it has replaced", by: ". TestPause_LostAndRefused",
		at: "internal/pause Begin", old: "finish(key, id, true)", new: "finish(key, id, false)"},
	{name: "a Pause that is given up stays", by: ". TestPause_LostAndRefused",
		at: "internal/pause Begin", old: "unheard && err != nil", new: "unheard && err == nil"},
	{name: "a request of a pause that has ended begins it anew", by: "internal/pause TestScripts",
		at: "internal/pause/lua/begin.lua", old: "if was and string.find(was, ARGV[2], 1, true) then", new: "if was and string.sub(was, 1, #ARGV[2]) == ARGV[2] then"},
	{name: "a Resume ends a pause that it has not seen", by: "internal/pause TestScripts",
		at: "internal/pause/lua/finish.lua", old: "if not was or string.sub(was, 1, #ARGV[2] + 1) ~= ARGV[2] .. '\\n' then", new: "if not was then"},
	{name: "the undo of a Pause that was replaced leaves it to be brought back", by: "internal/pause TestScripts",
		at: "internal/pause/lua/finish.lua", old: "if ARGV[4] == '1' and earlier and", new: "if ARGV[4] == '2' and earlier and"},
	{name: "a wait for the end of a pause goes on through Shutdown", by: ". TestPause_Shutdown",
		at: "internal/pause Wait", old: "defer context.AfterFunc(e.Draining(), cancel)()"},
	{name: "Do(Pausable) heeds a pause of another name", by: ". TestPause_OnceAndDo",
		at: ". unpaused", old: "key, err = e.Keys.ForPause(key)", new: "key = e.Keys.PauseAt(key)"},
	{name: "Do holds the lock while it waits for the end of a pause", by: ". TestPause_OnceAndDo",
		at: ". unpaused", old: "err == nil && !p.Lasts()", new: "err == nil"},
	{name: "InspectAll leaves out a name that is paused and free", by: ". TestPause_OnceAndDo",
		at: ". found.stands", old: "if f.Paused != nil {", new: "if false {"},
}
