-- Releases the write side, whatever the owner's count, and takes the owner's mark away if it
-- waited. Then it notifies the waiters. Readers that hold the lock keep it. An owner is never used
-- again, so this may run late and any number of times. It runs after left.lua,
-- holders.lua and marks.lua.
--
-- KEYS[1] the lock
-- KEYS[2] the waiting readers, KEYS[3] the waiting writers, KEYS[4] all that wait. While the slot is
--         on the move only KEYS[1] is sent, since a call with several keys would get TRYAGAIN. A
--         mark that stays then counts for no longer than its own time
-- ARGV[1] not-after: ignored
-- ARGV[2] the owner
-- ARGV[3] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[4] the channel
-- ARGV[5] what the timeout keys begin with
--
-- Returns {1, time}  released
--         {0, time}  the owner does not hold the write side; at most its mark was taken away

local writer = ARGV[2] .. ':write'
local held = redis.call('HEXISTS', KEYS[1], writer)
if held == 1 then
  if others(ARGV[5], writer) then
    redis.call('HDEL', KEYS[1], writer)
    redis.call('HSET', KEYS[1], 'mode', 'read')
  else
    redis.call('DEL', KEYS[1])
  end
end
local marked = #KEYS > 1 and forget(ARGV[2])
if held == 1 or marked then
  -- The messages come last, by pcall, so that the release never fails by them: a user who may not
  -- publish can still release, and waiters poll. Redisson's 1 wakes all that sleep. Its 0 wakes
  -- one, also one that is just going to sleep and would miss the 1.
  publish(ARGV[3], ARGV[4], '1')
  publish(ARGV[3], ARGV[4], '0')
end
return {held, now}
