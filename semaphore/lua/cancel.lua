-- Cancels a call of take.lua, on its track and with its number. What the call has taken is given
-- back. If the call comes later, it takes nothing. This runs after once.lua and all.lua, in one
-- script with them.
--
-- KEYS[1] how many permits are free
-- KEYS[2] the ledger
-- KEYS[3] how many there are in all: see all.lua
-- ARGV[5] how many permits the call was to take
-- ARGV[6] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[7] the channel
--
-- Returns {0, time, 0}  cancelled, now or by an earlier sending
if again and status == '0' then
  return earlier()
end
-- A semaphore that was deleted meanwhile, or made anew by Holdfast, gets nothing back.
local since = redis.call('HGET', KEYS[3], 'since')
local back = again and value and (not since or since == result)
local all = since and inAll() or 0
local reply = once(0, 0, true, function()
  if back then
    return failed('INCRBY', redis.pcall('INCRBY', KEYS[1], ARGV[5]))
  end
end)
local free = number + tonumber(ARGV[5])
if not reply[1] or not back then
  return reply
end
if all > 0 and free > all then
  setAll(free, tonumber(since)) -- more were given back than there were
end
if free > 0 then
  publish(ARGV[6], ARGV[7], text(free))
end
return reply
