-- Adds permits to a semaphore: releases them, or changes how many there are. It
-- follows once.lua.
--
-- KEYS[1] how many permits are free; made if it is not there
-- KEYS[2] the ledger
-- ARGV[5] how many to add; may be negative
-- ARGV[6] the command that tells: PUBLISH or SPUBLISH
-- ARGV[7] the channel
--
-- Returns {1, time, how many are free now}
if again then
  return earlier()
end
local free = number + tonumber(ARGV[5])
local reply = once(1, free, true, function()
  return failed(redis.pcall('INCRBY', KEYS[1], ARGV[5]))
end)
-- Redisson takes the payload for a number of permits: at least 1.
if reply[1] and free > 0 and free > number then
  redis.pcall(ARGV[6], ARGV[7], text(free))
end
return reply
