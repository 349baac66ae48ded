-- Releases a lock that nobody waits for, whatever the owner's count. It is the cheapest form of
-- release.lua. If a waiter is in the queue, it does nothing and says so. An owner is never used
-- again, so this may run late and any number of times.
--
-- KEYS[1] the lock
-- KEYS[2] the queue. While the slot is on the move only KEYS[1] is sent, since a call with
--         several keys would get TRYAGAIN. Waiters then find the free lock by polling.
-- ARGV[1] not-after: ignored
-- ARGV[2] the owner
-- ARGV[3] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[4] the lock's channel
--
-- Returns 1         released
--         {1, 0, 1} released, and a subscriber got the message
--         {0, 0}    the owner does not hold it
--         {2, 0}    a waiter is in the queue: release.lua must hand the lock over
--
-- The reply has 0 in place of the time: TIME would take a tenth of what an uncontended lock costs.

-- A queue that cannot be read must not keep the lock from being released.
local waiting = KEYS[2] and redis.pcall('ZCARD', KEYS[2])
if type(waiting) == 'number' and waiting > 0 then
  return {2, 0}
end
if redis.call('HDEL', KEYS[1], ARGV[2]) == 0 then
  return {0, 0}
end
local heard = publish(ARGV[3], ARGV[4], '0')
if type(heard) == 'number' and heard > 0 then
  return {1, 0, 1}
end
return 1
