-- Gives the work up without a result, so that the next caller does it. The owner is never used
-- again, so this may run late and any number of times.
--
-- KEYS[1] the record: see ask.lua
-- ARGV[1] not-after: ignored
-- ARGV[2] the owner
-- ARGV[3] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[4] the channel
--
-- Returns {1, time}  given up
--         {0, time}  the owner has not got the work
local found = redis.call('HMGET', KEYS[1], ARGV[2], 'by')
if not found[1] or found[2] then
  return {0, now}
end
redis.call('DEL', KEYS[1])
publish(ARGV[3], ARGV[4], '0')
return {1, now}
