// These bugs are in what Holdfast shares with Redisson.

package planted

var interopBugs = []bug{
	{name: "a listener outside the queue is not told of a hand-over", quick: true, by: "rlock TestHandOver_ThoseOutsideTheQueueAreToldOfIt",
		at: "internal/lockhash/lua/release.lua hand_over", old: "(ttl < 0 or ttl > tonumber(ARGV[10])) and others() ~="},
	{name: "a listener that sleeps beside a lock without an end is not told of its hand-over",
		at: "internal/lockhash/lua/release.lua hand_over", old: "(ttl < 0 or ttl > tonumber(ARGV[10]))", new: "ttl > tonumber(ARGV[10])",
		by: "fairlock TestThoseOutsideAreToldOfAHandOverByALongHold"},
	{name: "a hand-over by a short hold asks who listens", by: "fairlock TestThoseOutsideAreToldOfAHandOverByALongHold",
		at: "internal/lockhash/lua/release.lua hand_over", old: "(ttl < 0 or ttl > tonumber(ARGV[10])) and"},
	{name: "each hand-over beside Java wakes every Client", by: "rlock TestHandOver_ThoseOutsideTheQueueAreToldOfIt",
		at: "internal/pubsub channel.deliver", old: "payload == ForOthers", new: `payload == ""`},
	{name: "a Client that releases in the open takes the lock again at once",
		at: "internal/line perProcess.arrive", old: "!held && !l.leftOpen(key)", new: "!held",
		by: "rlock TestHandOver_AClientThatReleasesInTheOpenWaitsTheMomentOut"},
	{name: "a release that nobody queues for is never open", by: "rlock TestHandOver_AClientThatReleasesInTheOpenWaitsTheMomentOut",
		at: "internal/lockhash/lua/free.lua", old: "return {1, 0, 1}", new: "return {1, 0}"},
	{name: "tokens are shared with Java at a name where it counts them elsewhere", by: ". TestNamesThatCannotBeShared",
		at: "internal/lockhash NewLock", old: "keys.CheckShared", new: "keys.Check"},
	{name: "permits are made at a name where Java looks for them elsewhere", by: "internal/keys TestEachKindStaysInItsSlotAndToItself",
		at: "internal/keys ForSemaphore", old: "CheckShared(name)", new: "Check(name)"},
	{name: "a lock is left held by a user without the right to leave the queue", step: servers,
		at: "internal/lockhash/lua/enter.lua grant", old: "redis.call('HDEL', KEYS[1], me) return redis", new: "return redis",
		by: "fairlock TestAUserWithoutTheRightToLeaveTheQueueIsNotGrantedTheLock"},
}
