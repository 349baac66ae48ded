-- Sets the count of a latch that is not set, and so begins a generation. It runs after once.lua and
-- generations.lua, in one script with them.
--
-- KEYS[1] the count
-- KEYS[2] the ledger
-- KEYS[3] the record of generations
-- ARGV[5] the count
-- ARGV[6] how long the latch lasts, in ms; 0: for ever
-- ARGV[7] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[8] the channel
--
-- Returns {1, time, 0}  set
--         {0, time, 0}  it is set already
if again then
  return earlier()
end
if value then
  return once(0, 0, true)
end
local lasts = tonumber(ARGV[6])
local reply = once(1, 0, false, function()
  local g, failure = begin(lasts > 0 and ms + lasts or 0)
  if failure then
    return failure
  end
  if lasts > 0 then
    failure = failed('SET', redis.pcall('SET', KEYS[1], ARGV[5], 'PX', ARGV[6]))
    -- The expiry is the very ms that the record has. So a waiter that finds the count gone can tell
    -- whether the latch has run out.
    redis.pcall('PEXPIREAT', KEYS[1], text(g.ends))
  else
    failure = failed('SET', redis.pcall('SET', KEYS[1], ARGV[5]))
  end
  if failure then
    redis.call('ZREM', KEYS[record], g.member)
  end
  return failure
end)
if reply[1] then
  publish(ARGV[7], ARGV[8], '1')
end
return reply
