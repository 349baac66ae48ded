-- Takes permits of a semaphore. It follows once.lua. A refusal is not recorded,
-- so that asking writes nothing: a caller who asked more than once before he heard
-- of it cancels the call.
--
-- KEYS[1] how many permits are free
-- KEYS[2] the ledger
-- ARGV[5] how many to take
--
-- Returns {1, time, 0}  taken
--         {0, time}     there are not as many
if again then
  return earlier()
end
if number < tonumber(ARGV[5]) then
  return {0, now}
end
return once(1, 0, false, function()
  return failed(redis.pcall('DECRBY', KEYS[1], ARGV[5]))
end)
