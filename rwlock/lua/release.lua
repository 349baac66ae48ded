-- Releases the write side, whatever the owner's count, takes its mark away if it
-- waited, and tells the waiters. Readers that are in stay in. An owner is never
-- used again, so this may run late and any number of times.
--
-- KEYS[1] the lock
-- ARGV[1] not-after: not looked at
-- ARGV[2] the owner
-- ARGV[3] the command that tells: PUBLISH or SPUBLISH
-- ARGV[4] the channel. It is no key, and neither are the marks, so that in a slot
--         on the move the release goes on where a call with more keys would be told
--         to try again.
-- ARGV[5] what the timeout keys begin with
-- ARGV[6] the waiting readers, ARGV[7] the waiting writers, ARGV[8] all that wait
--
-- Returns {1, time}  released
--         {0, time}  the owner does not hold the write side; at the most its mark went
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local writer = ARGV[2] .. ':write'
local held = redis.call('HEXISTS', KEYS[1], writer)
if held == 1 then
  if others(KEYS[1], ARGV[5], writer) then
    redis.call('HDEL', KEYS[1], writer)
    redis.call('HSET', KEYS[1], 'mode', 'read')
  else
    redis.call('DEL', KEYS[1])
  end
end
local marked = unmark({readers = ARGV[6], writers = ARGV[7], waiting = ARGV[8]}, ARGV[2])
if held == 1 or marked then
  -- Last, and never the release's failure: who may not publish still releases,
  -- and waiters poll. Redisson's 1 wakes all that sleep; its 0 wakes one, also one
  -- that is just going to sleep, for whom 1 would be lost.
  redis.pcall(ARGV[3], ARGV[4], '1')
  redis.pcall(ARGV[3], ARGV[4], '0')
end
return {held, now}
