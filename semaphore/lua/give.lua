-- Adds permits to a semaphore: gives them back, or changes how many there are in all. It runs after
-- once.lua and all.lua, in one script with them.
--
-- KEYS[1] how many permits are free; made if it is not there
-- KEYS[2] the ledger
-- KEYS[3] how many there are in all: see all.lua
-- ARGV[5] how many to add; may be negative
-- ARGV[6] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[7] the channel
-- ARGV[8] 1: this changes how many there are in all; 0: this gives permits back
--
-- Returns {1, time, how many are free now}
if again then
  return earlier()
end
local free, changes = number + tonumber(ARGV[5]), ARGV[8] == '1'
local since = tonumber(redis.call('HGET', KEYS[3], 'since') or 0)
local all = inAll()
local reply = once(1, free, true, function()
  return failed('INCRBY', redis.pcall('INCRBY', KEYS[1], ARGV[5]))
end)
if not reply[1] then
  return reply
end
-- The call has taken effect, so errors in recording how many there are in all are ignored.
if not value and changes then
  setAll(free, now)
elseif not value then
  dropAll() -- it is of a semaphore that is gone
elseif since > 0 and changes then
  -- If more were free than there were in all, or that was not known, nobody knows how many there are.
  setAll(all > 0 and number <= all and all + tonumber(ARGV[5]) or 0, since)
elseif all > 0 and free > all then
  setAll(free, since) -- more were given back than there were
end
-- Redisson reads the message as a number of permits: it must be at least 1.
if free > 0 and free > number then
  publish(ARGV[6], ARGV[7], text(free))
end
return reply
