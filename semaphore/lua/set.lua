-- Sets how many permits there are in all, including those that are taken. It runs after once.lua,
-- in one script with it.
--
-- KEYS[1] how many permits are free
-- KEYS[2] the ledger
-- KEYS[3] the permits that are taken, if that is known: a sorted set
-- ARGV[5] how many there are to be in all
-- ARGV[6] 1: only if there is no such semaphore yet
-- ARGV[7] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[8] the channel
--
-- Returns {1, time, how many are free now}  set
--         {0, time, 0}                      there is such a semaphore already
if again then
  return earlier()
end
local taken = 0
if KEYS[3] then
  taken = redis.call('ZCARD', KEYS[3])
end
if value and ARGV[6] == '1' then
  return once(0, 0, true)
end
local free = tonumber(ARGV[5]) - taken
local reply = once(1, free, false, function()
  return failed('INCRBY', redis.pcall('INCRBY', KEYS[1], text(free - number)))
end)
-- As in add.lua.
if reply[1] and (free < number or free > 0 and free > number) then
  publish(ARGV[7], ARGV[8], text(math.max(free, 1)))
end
return reply
