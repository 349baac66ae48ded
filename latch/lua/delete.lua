-- Deletes a latch, whatever its count. It runs after once.lua and generations.lua, in one script
-- with them.
--
-- KEYS[1] the count
-- KEYS[2] the ledger
-- KEYS[3] the record of generations
-- ARGV[5] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[6] the channel
--
-- Returns {1, time, 0}  deleted
--         {0, time, 0}  there is no such latch
if again then
  return earlier()
end
if not value then
  return once(0, 0, true)
end
-- The record is changed first: a generation that is open in it, and whose count is gone, counts as
-- ended at zero.
local reply = once(1, 0, true, function()
  local failure = last.state == 'o' and replace(last, 'd')
  if failure then
    return failure
  end
  failure = failed('DEL', redis.pcall('DEL', KEYS[1]))
  if failure and last.state == 'o' then
    redis.call('ZADD', KEYS[record], text(last.id), last.member)
    redis.call('ZREM', KEYS[record], 'd:' .. text(last.id) .. ':' .. text(last.ends))
  end
  return failure
end)
if reply[1] then
  publish(ARGV[5], ARGV[6], '1')
end
return reply
