-- Tells how many wait for the lock, and how many of them before one owner.
--
-- KEYS[1] the queue
-- KEYS[2] until when the places in it are kept
-- ARGV[1] not-after: not looked at
-- ARGV[2] the owner
--
-- Returns {1, time, waiting, before the owner}  -1: the owner does not wait
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local ms = string.format('%.0f', math.floor(now / 1000))
local waiting = redis.call('ZCOUNT', KEYS[2], '(' .. ms, '+inf')
local rank = redis.call('ZRANK', KEYS[1], ARGV[2]) or -1
return {1, now, waiting, rank}
