-- Takes all permits that are free. It follows once.lua.
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
    -- Not SET, which would take a time to live away.
    return failed(redis.pcall('DECRBY', KEYS[1], text(taken)))
  end
end)
