-- Returns how many owners wait for the lock, and how many are before one owner.
--
-- KEYS[1] the queue
-- KEYS[2] until when the places in it are kept
-- ARGV[1] not-after: ignored
-- ARGV[2] the owner
--
-- Returns {1, time, waiting, before}
--         waiting: how many places are still kept
--         before: how many places are before the owner's, also lapsed ones that nobody has
--         removed yet; -1: the owner does not wait

local ms = string.format('%.0f', math.floor(now / 1000))
local waiting = redis.call('ZCOUNT', KEYS[2], '(' .. ms, '+inf')
local rank = redis.call('ZRANK', KEYS[1], ARGV[2]) or -1
return {1, now, waiting, rank}
