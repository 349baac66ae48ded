-- Counts a latch down by one. At zero the latch is gone. It runs after once.lua and
-- generations.lua, in one script with them.
--
-- KEYS[1] the count
-- KEYS[2] the ledger
-- KEYS[3] the record of generations
-- ARGV[5] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[6] the channel
--
-- Returns {1, time, what is left}  counted; 0 even if there is no such latch
if again then
  return earlier()
end
if not value then
  return once(1, 0, true)
end
local left = number - 1
local reply = once(1, math.max(left, 0), true, function()
  if left > 0 then
    return failed('DECR', redis.pcall('DECR', KEYS[1]))
  end
  return failed('DEL', redis.pcall('DEL', KEYS[1]))
end)
if not reply[1] then
  return reply
end

-- The call has taken effect, so errors in writing the record are ignored. A generation that is open
-- in the record and has no count has ended at zero, or run out.
if last.state == 'o' then
  if left <= 0 then
    replace(last, 'z')
  end
  keep(last.ends)
end
if left == 0 then
  publish(ARGV[5], ARGV[6], '0')
end
return reply
