// Bugs of connections.

package mutationtest

var connBugs = []bug{
	{
		name: "a dial that was left behind is closed whatever it returned",
		file: "internal/conn/user.go",
		old:  "if r := <-done; r.err == nil {",
		new:  "if r := <-done; true {",
		pkg:  "internal/conn", tests: []string{"TestADialThatIsLeftBehindMayReturnANilConnection"},
	},
	{
		name: "a panic of the user's dialer ends the process",
		file: "internal/conn/user.go",
		old:  "if p := recover(); p != nil {",
		new:  "if p := any(nil); p != nil {",
		pkg:  "internal/conn", tests: []string{"TestAUsersFunctionThatPanicsIsAnError"},
	},
	{
		name: "a connection that cannot be made has the queue fail though others work",
		file: "internal/conn/reach.go",
		old:  "	case len(l.wires) == 0:\n",
		new:  "	default:\n		l.gate.era.Add(1)\n",
		pkg:  "internal/conn", tests: []string{"TestAConnectionThatCannotBeMadeSaysNothingOfThoseThatWork"},
	},
	{
		name: "renewals wait for their own connection though the callers' works",
		file: "internal/conn/renew.go",
		old:  "case ctx.Err() == nil && l.queueAll(batch):",
		new:  "case ctx.Err() != nil && l.queueAll(batch):",
		pkg:  "internal/conn", tests: []string{"TestRenewalsGoOutBesideCallersWhereTheirConnectionCannotBeMade"},
	},
	{
		name: "the gate is open after a failure",
		file: "internal/conn/gate.go",
		old:  "	return rand.N(bound)\n",
		new:  "	return rand.N(bound) / 100\n",
		pkg:  "internal/conn", tests: []string{"TestDialsDoNotGrowWithTheCallers"},
		quick: true,
	},
	{
		name: "a connection is good as soon as it is made",
		file: "internal/conn/life.go",
		old:  "	if err != nil {\n		w.end()\n		return nil, err\n	}\n	return w, nil\n",
		new:  "	if err != nil {\n		w.end()\n		return nil, err\n	}\n	l.gate.good()\n	return w, nil\n",
		pkg:  "internal/conn", tests: []string{"TestAServerThatIsNoMasterIsDialledAFewTimesASecond"},
	},
	{
		name: "LOADING replaces the connection",
		file: "internal/conn/errors.go",
		old:  `hasCode(err, "MASTERDOWN ")` + "\n}",
		new:  `hasCode(err, "MASTERDOWN ") || hasCode(err, "LOADING ")` + "\n}",
		pkg:  "internal/conn", tests: []string{"TestAServerThatLoadsItsDataKeepsItsConnections"},
	},
	{
		name: "connecting ends with the caller that it was begun for",
		file: "internal/conn/lane.go",
		old:  "			if r.withdraw() {\n				l.forget()\n			}\n			return false\n		case <-look:",
		new:  "			if r.withdraw() {\n				l.forget()\n			}\n			l.cancel()\n			l.life, l.cancel = context.WithCancel(context.Background())\n			return false\n		case <-look:",
		pkg:  "internal/conn", tests: []string{"TestConnectingIsFinishedThoughItsFirstCallerHasGone"},
	},
	{
		name: "an IPv6 address of a redirection is taken as it is",
		file: "internal/conn/errors.go",
		old:  "	return net.JoinHostPort(host, port)\n",
		new:  "	return host + \":\" + port\n",
		pkg:  "internal/conn", tests: []string{"TestARedirectionMayNameAnIPv6Address"},
	},
	{
		name: "streamed credentials are not told to connections that are there",
		file: "internal/conn/wire.go",
		old:  "		w.lane.feed.tell(ctx, rdb)\n",
		new:  "",
		pkg:  "internal/conn", tests: []string{"TestStreamedCredentialsComeByOneSubscription"},
	},
	{
		name: "WAIT may wait for ever",
		file: "internal/conn/wire.go",
		old:  "limit := max(1, ",
		new:  "limit := max(0, ",
		pkg:  "internal/conn", tests: []string{"TestWaitHasAnEndHoweverShortTheReadTimeoutIs"},
	},
	{
		name: "a server that has left keeps its connections",
		file: "internal/conn/cluster.go",
		old:  "		if l.retire() {\n",
		new:  "		if false {\n",
		pkg:  "internal/conn", tests: []string{"TestConnectionsToAServerThatHasLostItsSlotsAreClosed"},
	},
	{
		name: "a try has no bound of its own",
		file: "internal/engine/bounded.go",
		old:  "return context.WithTimeoutCause(ctx, TryBound, errTryBound)",
		new:  "return context.WithTimeoutCause(ctx, 100*TryBound, errTryBound)",
		pkg:  ".", tests: []string{"TestATryEndsByItselfWhereRedisCannotBeReached"},
	},
}
