-- Adds permits to a PermitSemaphore, and so changes how many there are in all. It runs after
-- once.lua, in one script with it.
--
-- KEYS[1] how many permits are free; made if it is not there
-- KEYS[2] the ledger
-- ARGV[5] how many to add; may be negative
-- ARGV[6] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[7] the channel
--
-- Returns {1, time, how many are free now}
if again then
  return earlier()
end
local free = number + tonumber(ARGV[5])
local reply = once(1, free, true, function()
  return failed('INCRBY', redis.pcall('INCRBY', KEYS[1], ARGV[5]))
end)
-- Redisson reads the message as a number of permits: it must be at least 1.
-- Who waits for more than there are in all must hear that too. Redisson takes no number below 1.
if reply[1] and (free < number or free > 0 and free > number) then
  publish(ARGV[6], ARGV[7], text(math.max(free, 1)))
end
return reply
