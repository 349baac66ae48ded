-- Takes permits of a semaphore. It runs after once.lua and all.lua, in one script with them. A
-- refusal is not recorded, so a refused call writes nothing. A caller that had to send the call
-- more than once before it heard of the refusal therefore cancels the call.
--
-- KEYS[1] how many permits are free
-- KEYS[2] the ledger
-- KEYS[3] how many there are in all, if that is known: see all.lua
-- ARGV[5] how many to take
--
-- Returns {1, time, since}  taken. since: when the semaphore was set, 0 if that is not known;
--                           see cancel.lua
--         {0, time, 0}      fewer are free
--         {0, time, 1}      there is no such semaphore
--         {0, time, 2}      there are fewer in all
if again then
  return earlier()
end
local wanted = tonumber(ARGV[5])
if not value then
  return {0, now, 1}
elseif number < wanted then
  local all = inAll()
  -- If more are free than there are in all, the record is of another semaphore.
  return {0, now, all > 0 and wanted > all and number <= all and 2 or 0}
end
local since = tonumber(redis.call('HGET', KEYS[3], 'since') or 0)
local reply = once(1, since, false, function()
  return failed('DECRBY', redis.pcall('DECRBY', KEYS[1], ARGV[5]))
end)
if reply[1] and since > 0 then
  keepAll()
end
return reply
