-- Gives back the units that a call has taken, or some of them, once. It runs after state.lua, in one script with it. The
-- id of a call is never used again, so this may run late and any number of times.
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

local at, last, units = string.find(requests, ' ' .. ARGV[2] .. ':?(%d*)')
if not at or at > 1 and ARGV[4] ~= '1' then
  return {0, now}
end
units = math.min(tonumber(units) or 1, tonumber(ARGV[3]))
local count, period, rev = string.match(rate, '^(%d+) (%d+) %d+ (%d+)$')
debt, taken = math.max(debt - units * period / count, 0), math.max(taken - units, 0)
requests = string.sub(requests, 1, at - 1) .. string.sub(requests, last + 1)
if tonumber(rev) > tonumber(ARGV[5]) then
  stays = month
end
changed, answer = true, {1, now}
