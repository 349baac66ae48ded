// These bugs are in elections.

package planted

var leaderBugs = []bug{
	{
		name: "the lead is given up before the work has returned",
		file: "leader/term.go",
		old:  "func (t *Term) resign(why string) { t.end(t.over(why)) }",
		new:  "func (t *Term) resign(why string) { t.end(t.over(why)); _ = t.lease.Release(t.ctx) }",
		pkg:  "leader", tests: []string{"TestTheLeadIsKeptUntilTheWorkReturns"},
		quick: true,
	},
	{
		name: "an observer goes back to a leader of an older term",
		file: "leader/observe.go",
		old:  "if found.Token < o.newest {",
		new:  "if found.Token < 0 {",
		pkg:  "leader", tests: []string{"TestObserveNeverGoesBack"},
		quick: true,
	},
	{
		name: "a request to resign meets whoever leads when it comes",
		file: "leader/lua/ask.lua",
		old:  "record[2] ~= ARGV[2] or",
		new:  "not record[1] or",
		pkg:  "leader", tests: []string{"TestLookAndAskScripts"},
	},
	{
		name: "a leader gives way to one of its own priority",
		file: "leader/lua/candidate.lua",
		old:  "tonumber(leads[2]) < priority",
		new:  "tonumber(leads[2]) <= priority",
		pkg:  "leader", tests: []string{"TestAPreemptingCandidateTakesTheLeadOfALowerPriority"},
	},
	{
		name: "a lower priority comes first",
		file: "leader/lua/candidate.lua",
		old:  "local number = now - priority * step",
		new:  "local number = now + priority * step",
		pkg:  "leader", tests: []string{"TestCandidatesLeadByPriorityAndThenInOrder"},
	},
	{
		name: "a leader is asked to resign by a message alone",
		file: "leader/asked.go",
		old:  "\tif asked := call.Text(3); asked != \"\" {",
		new:  "\tif asked := call.Text(3); asked != \"\" && t.election.engine().Age() < 0 {",
		pkg:  "leader", tests: []string{"TestALeaderThatHearsNothingResignsAtItsNextPoll"},
	},
	{
		name: "a record counts without the lock",
		file: "leader/lua/look.lua",
		old:  "if not record[1] or redis.call('HEXISTS', KEYS[1], record[1]) == 0 then",
		new:  "if not record[1] then",
		pkg:  "leader", tests: []string{"TestLookAndAskScripts", "TestObserveNeedsNoMessage"},
	},
	{
		name: "the end of a term is told only by the next leader",
		file: "leader/lua/retire.lua",
		old:  "    publish(ARGV[3], ARGV[11], '0')\n",
		new:  "",
		pkg:  "leader", tests: []string{"TestObserveShowsEachChangeAtOnce"},
	},
	{
		name: "a nil of a work whose term has ended resigns for good",
		file: "leader/run.go",
		old:  "\tcase lasted && err == nil:\n",
		new:  "\tcase err == nil:\n",
		pkg:  "leader", tests: []string{"TestAResignationHandsOverAtOnce", "TestWhatTheWorkReturnsDecides"},
	},
	{
		name: "a lost lease goes on leading until the work notices",
		file: "leader/term.go",
		old:  "return t.ctx.Err() == nil && time.Now().Before(t.lease.Deadline())",
		new:  "return t.overFor() == 0 || t.lease.Err() != nil",
		pkg:  "leader", tests: []string{"TestAWorkThatOutlivesItsLossIsNamed"},
	},
	{
		name: "the work's context outlives its lease",
		file: "leader/run.go",
		old:  "context.WithCancelCause(l.Context(ctx))",
		new:  "context.WithCancelCause(ctx)",
		pkg:  "leader", tests: []string{"TestALeadThatIsTakenAwayIsLost"},
	},
	{
		name: "the name of an election is not mapped",
		file: "synchronizers.go",
		old:  "leader.New(c.engine, name, c.mapped(name), ",
		new:  "leader.New(c.engine, name, name, ",
		pkg:  "rlock", tests: []string{"TestNameMapperOfEachKind"},
	},
	{
		name: "a work that does not return is not named",
		file: "leader/term.go",
		old:  "\t\t\tt.overdue()\n",
		new:  "\t\t\tif t.most < 0 {\n\t\t\t\tt.overdue()\n\t\t\t}\n",
		pkg:  "leader", tests: []string{"TestAWorkThatOutlivesItsLossIsNamed"},
	},
}
