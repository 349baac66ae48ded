// These bugs are in what Holdfast shares with Redisson.

package planted

var interopBugs = []bug{
	{
		name: "a listener outside the queue is not told of a hand-over",
		file: "internal/lockhash/lua/release.lua",
		old:  "  if (ttl < 0 or ttl > tonumber(ARGV[10])) and others() ~= false then\n",
		new:  "  if false then\n",
		pkg:  "rlock", tests: []string{"TestHandOver_ThoseOutsideTheQueueAreToldOfIt"},
		quick: true,
	},
	{
		name: "a listener that sleeps beside a lock without an end is not told of its hand-over",
		file: "internal/lockhash/lua/release.lua",
		old:  "  if (ttl < 0 or ttl > tonumber(ARGV[10])) and others() ~= false then\n",
		new:  "  if ttl > tonumber(ARGV[10]) and others() ~= false then\n",
		pkg:  "fairlock", tests: []string{"TestThoseOutsideAreToldOfAHandOverByALongHold"},
	},
	{
		name: "a hand-over by a short hold asks who listens",
		file: "internal/lockhash/lua/release.lua",
		old:  "  if (ttl < 0 or ttl > tonumber(ARGV[10])) and others() ~= false then\n",
		new:  "  if others() ~= false then\n",
		pkg:  "fairlock", tests: []string{"TestThoseOutsideAreToldOfAHandOverByALongHold"},
	},
	{
		name: "each hand-over beside Java wakes every Client",
		file: "internal/pubsub/channel.go",
		old:  "if payload == ForOthers {",
		new:  "if payload == \"\" {",
		pkg:  "rlock", tests: []string{"TestHandOver_ThoseOutsideTheQueueAreToldOfIt"},
	},
	{
		name: "a Client that releases in the open takes the lock again at once",
		file: "internal/line/perprocess.go",
		old:  "!held && !l.leftOpen(key)",
		new:  "!held",
		pkg:  "rlock", tests: []string{"TestHandOver_AClientThatReleasesInTheOpenWaitsTheMomentOut"},
	},
	{
		name: "a release that nobody queues for is never open",
		file: "internal/lockhash/lua/free.lua",
		old:  "  return {1, 0, 1}\n",
		new:  "  return {1, 0}\n",
		pkg:  "rlock", tests: []string{"TestHandOver_AClientThatReleasesInTheOpenWaitsTheMomentOut"},
	},
	{
		name: "tokens are shared with Java at a name where it counts them elsewhere",
		file: "internal/lockhash/lock.go",
		old:  "l.err = keys.CheckShared(key)",
		new:  "l.err = keys.Check(key)",
		pkg:  ".", tests: []string{"TestNamesThatCannotBeShared"},
	},
	{
		name: "permits are made at a name where Java looks for them elsewhere",
		file: "internal/keys/counted.go",
		old:  "if err := CheckShared(name); err != nil {",
		new:  "if err := Check(name); err != nil {",
		pkg:  "internal/keys", tests: []string{"TestPermitsThatJavaWouldLookForElsewhereAreRefused"},
	},
	{
		name: "a lock is left held by a user without the right to leave the queue",
		file: "internal/lockhash/lua/enter.lua",
		old:  "    redis.call('HDEL', KEYS[1], me)\n    return redis.pcall('ZREM', KEYS[4], me)\n",
		new:  "    return redis.pcall('ZREM', KEYS[4], me)\n",
		pkg:  "fairlock", tests: []string{"TestAUserWithoutTheRightToLeaveTheQueueIsNotGrantedTheLock"},
	},
}
