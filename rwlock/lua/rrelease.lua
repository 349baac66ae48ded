-- Releases one reader, whatever its count, and takes its mark away if it waited. Then it notifies
-- the waiters, if nobody else holds the lock or a mark was taken away. It never shortens the lock's
-- time to live, on which others rely. An owner is never used again, so this may run late and any
-- number of times. It runs after left.lua, holders.lua
-- and marks.lua.
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
--         {0, time}  the owner does not hold the read side; at most its mark was taken away

local count = redis.call('HGET', KEYS[1], ARGV[2])
local tell = false
if count then
  local stay = others(ARGV[5], ARGV[2])
  if stay then
    redis.call('HDEL', KEYS[1], ARGV[2])
    tell = stay == 1 -- perhaps only zombies are left: a writer sweeps on
  else
    redis.call('DEL', KEYS[1])
    tell = true
  end
end
-- The first key is deleted in any case: a grant that failed midway may have left it.
for i = 1, tonumber(count) or 1 do
  redis.pcall('DEL', ARGV[5] .. ARGV[2] .. ':rwlock_timeout:' .. i)
end
if #KEYS > 1 and forget(ARGV[2]) then
  tell = true
end
if tell then
  -- The messages come last, by pcall, so that the release never fails by them: a user who may not
  -- publish can still release, and waiters poll. Redisson's 1 wakes all that sleep. Its 0 wakes
  -- one, also one that is just going to sleep and would miss the 1.
  publish(ARGV[3], ARGV[4], '1')
  publish(ARGV[3], ARGV[4], '0')
end
return {count and 1 or 0, now}
