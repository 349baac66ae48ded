// Bugs of what a lease tells its holder.

package mutationtest

var leaseBugs = []bug{
	{
		name: "a key of another type is taken for a renewal that failed",
		file: "lease/renew.go",
		old:  "\tcase answered:\n\t\th.engine.CountRenewal(kind, telemetry.OutcomeGone)\n\t\th.endAll(gone)\n",
		new:  "\tcase answered:\n\t\th.engine.CountRenewal(kind, telemetry.OutcomeFailed)\n\t\th.renewalFailed(errs.Plain(gone.also))\n",
		pkg:  ".", tests: []string{"TestAKeyThatBecameAnotherTypeIsToldByTheNextRenewal"},
		quick: true,
	},
	{
		name: "the release of an overwritten lock does not say that it was lost",
		file: "lease/release.go",
		old:  "\t\treturn h.foundGone(gone)\n",
		new:  "\t\t_ = gone\n\t\treturn err\n",
		pkg:  ".", tests: []string{"TestAKeyThatBecameAnotherTypeIsToldByTheHoldersCalls"},
	},
	{
		name: "one permit is taken for another by the Monitor",
		file: "monitor.go",
		old:  "sighting{i.Name, h.Owner, h.Permit, h.Write}",
		new:  "sighting{i.Name, h.Owner, \"\", h.Write}",
		pkg:  ".", tests: []string{"TestBehaviour24_MonitorPermits"},
	},
	{
		name: "a permit whose lease is over is told as taken",
		file: "internal/inspect/lua/inspect.lua",
		old:  "if tonumber(found[i + 1]) > tonumber(ms) then",
		new:  "if tonumber(found[i + 1]) > 0 then",
		pkg:  ".", tests: []string{"TestInspectManyPermits"},
	},
	{
		name: "a hook of Do gets no name",
		file: "do.go",
		old:  "d.onExit(ctx, l.Name(), err)",
		new:  "d.onExit(ctx, \"\", err)",
		pkg:  "multilock", tests: []string{"TestMultiLock_Do", "TestQuorum_Do"},
	},
	{
		name: "Done is closed before the contexts are cancelled",
		file: "lease/end.go",
		old:  "\tif len(e.children) > 0 {\n\t\terr := l.Err()\n",
		new:  "\tl.hold.mu.Lock()\n\tearly := l.rare.done\n\tl.rare.telling, l.rare.done = false, nil\n\tl.hold.mu.Unlock()\n\tif early != nil {\n\t\tclose(early)\n\t}\n\tif len(e.children) > 0 {\n\t\terr := l.Err()\n",
		pkg:  "lease", tests: []string{"TestContextsEndBeforeDoneIsClosed"},
	},
	{
		name: "a fixed lease that ends as agreed is counted as lost",
		file: "lease/end.go",
		old:  "\tif s.lost.how == byExpiry {\n\t\th.engine.CountExpired(kind, s.held)\n\t\treturn\n\t}\n",
		new:  "",
		pkg:  ".", tests: []string{"TestAFixedLeaseThatEndsAsAgreedIsNotCountedAsLost"},
	},
	{
		name: "an expired lease does not match ErrLost",
		file: "internal/errs/errs.go",
		old:  "func (s special) Is(target error) bool { return target == s.also }",
		new:  "func (s special) Is(target error) bool { return false }",
		pkg:  ".", tests: []string{"TestBehaviour06_FixedLease"},
	},
	{
		name: "an outage is told from its last failure on, not from its first",
		file: "lease/loss.go",
		old:  "\tif s.failure == \"\" {\n\t\ts.failing = h.renewAt\n\t}\n",
		new:  "\ts.failing = h.renewAt\n",
		pkg:  ".", tests: []string{"TestALossSaysWhyAndAfterHowLong"},
	},
	{
		name: "Do tells a loss twice",
		file: "do.go",
		old:  "case released == nil || err != nil && !adds(err, released):",
		new:  "case released == nil:",
		pkg:  ".", tests: []string{"TestDoTellsALossOnce"},
	},
	{
		name: "a force release deletes an application's own hash",
		file: "internal/lockhash/state.go",
		old:  "if at < 1 || err != nil || h.Count < 1 {",
		new:  "if at < 1 && err != nil && h.Count < 0 {",
		pkg:  ".", tests: []string{"TestForceReleaseLeavesAnApplicationsOwnHashAlone"},
	},
	{
		name: "a wait does not match the cause of its context",
		file: "lease/acquire.go",
		old:  "err = opError(op, q.Resource, errs.Ended(ctx, q.foreign(ctx, err)))",
		new:  "err = opError(op, q.Resource, q.foreign(ctx, err))",
		pkg:  ".", tests: []string{"TestAWaitThatEndsMatchesTheCauseOfItsContext"},
	},
	{
		name: "an error of several has a prefix for each",
		file: "internal/errs/text.go",
		old:  `text := strings.ReplaceAll(err.Error(), prefix, "")`,
		new:  `text := err.Error()`,
		pkg:  "internal/errs", tests: []string{"TestAnErrorHasOnePrefixAndIsOneLine"},
	},
}
