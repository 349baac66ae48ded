-- Gives back the units that a call has taken, or some of them, once. It runs after state.lua and rate.lua, in one
-- script with them. The id of a call is never used again, so this may run late and any number of times.
--
-- KEYS[1] the limit: see state.lua
-- ARGV[1] not-after: ignored
-- ARGV[2] the id of the call
-- ARGV[3] how many of its units
-- ARGV[4] 1: even if others have taken since. Otherwise nothing is given back then: those others keep their times, and
--         somebody would get the units at the same time as one of them
-- ARGV[5] rev of the rate, as the caller knows it: see take.lua
--
-- Returns {1, time}  given back
--         {0, time}  the call has taken nothing, or given it back; or others have taken since

local at, last = string.find(requests, ' ' .. ARGV[2] .. '%S*')
if not at or at > 1 and ARGV[4] ~= '1' then
  return {0, now}
end
local count, period, _, rev = parts(rate)
local units = math.min(of(string.sub(requests, at, last)), tonumber(ARGV[3]))
debt, taken = math.max(debt - units * period / count, 0), math.max(taken - units, 0)
requests = string.sub(requests, 1, at - 1) .. string.sub(requests, last + 1)
write(rev > tonumber(ARGV[5]) and month or 0)
return {1, now}
