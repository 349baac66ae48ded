-- Sets how many permits of a semaphore there are, if there is no such semaphore yet. It runs after
-- once.lua and all.lua, in one script with them.
--
-- KEYS[1] how many permits are free
-- KEYS[2] the ledger
-- KEYS[3] how many there are in all: see all.lua
-- ARGV[5] how many there are to be
-- ARGV[6] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[7] the channel
--
-- Returns {1, time, how many are free now}  set
--         {0, time, 0}                      there is such a semaphore already
if again then
  return earlier()
end
if value then
  return once(0, 0, true)
end
local all = tonumber(ARGV[5])
local reply = once(1, all, false, function()
  local failure = setAll(all, now)
  if not failure then
    failure = failed('INCRBY', redis.pcall('INCRBY', KEYS[1], ARGV[5]))
    if failure then
      dropAll()
    end
  end
  return failure
end)
if reply[1] and all > 0 then
  publish(ARGV[6], ARGV[7], text(all))
end
return reply
