-- Takes all permits that are free. It runs after once.lua, in one script with it.
--
-- KEYS[1] how many permits are free
-- KEYS[2] the ledger
--
-- Returns {1, time, how many it took}
if again then
  return earlier()
end
local taken = math.max(number, 0)
return once(1, taken, true, function()
  if taken > 0 then
    -- Not SET, which would remove the key's time to live.
    return failed('DECRBY', redis.pcall('DECRBY', KEYS[1], text(taken)))
  end
end)
