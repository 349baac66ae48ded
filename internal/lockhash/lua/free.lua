-- Releases a lock that nobody waits for, whatever the owner's count: release.lua with
-- the least that it takes. Where somebody waits, it does nothing and says so. An owner
-- is never used again, so this may run late and any number of times.
--
-- KEYS[1] the lock
-- KEYS[2] the queue. In a slot on the move, where a call with several keys would be
--         told to try again, the first alone: waiters poll.
-- ARGV[1] not-after: of no use here
-- ARGV[2] the owner
-- ARGV[3] the command that tells: PUBLISH or SPUBLISH
-- ARGV[4] the channel where it is told
--
-- Returns {1, 0}    released
--         {1, 0, 1} released, and somebody heard that
--         {0, 0}    the owner does not hold it
--         {2, 0}    somebody waits: release.lua is to hand it over
-- without the time, which would be a tenth of what an uncontended lock costs.

-- A queue that is broken must not keep the lock from being released.
local waiting = KEYS[2] and redis.pcall('ZCARD', KEYS[2])
if type(waiting) == 'number' and waiting > 0 then
  return {2, 0}
end
local released = redis.call('HDEL', KEYS[1], ARGV[2])
local heard = released == 1 and redis.pcall(ARGV[3], ARGV[4], '0')
if type(heard) == 'number' and heard > 0 then
  return {1, 0, 1}
end
return {released, 0}
