-- Releases the lock, whatever the holder's count, and tells the waiters. A holder
-- is never used again, so this may run late and any number of times.
--
-- KEYS[1] the lock
-- ARGV[1] not-after: not looked at
-- ARGV[2] the holder
-- ARGV[3] the command that tells: PUBLISH or SPUBLISH
-- ARGV[4] the channel. It is no key, so that in a slot on the move the release
--         goes on where a call with two keys would be told to try again.
--
-- Returns {1, time}  released
--         {0, time}  the holder does not hold it; nothing was done
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
-- Asked before, not after: in a slot that is on the move a key that is gone is
-- another server's to answer for.
local last = redis.call('HLEN', KEYS[1]) == 1
if redis.call('HDEL', KEYS[1], ARGV[2]) == 0 then
  return {0, now}
end
if last then
  -- Last, and never the release's failure: who may not publish still releases,
  -- and waiters poll.
  redis.pcall(ARGV[3], ARGV[4], '0')
end
return {1, now}
