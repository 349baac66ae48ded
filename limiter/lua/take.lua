-- Takes units of a limit, at once or later: the part of the debt that is longer than the time of the burst is that
-- of callers that wait. It runs after state.lua, asked.lua and turn.lua, in one script with them.
--
-- KEYS[1] the limit: see state.lua
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the id of the call, which no other has: eight letters and digits
-- ARGV[3] how many units; 0: none, only look
-- ARGV[4] the fewest units that the caller would take
-- ARGV[5] how long it would wait for them, in microseconds
-- ARGV[6] the rate, as the caller knows it. If the limit has one of a greater rev, that counts
-- ARGV[7], ARGV[8] of that rate: the time of a unit, and that of the burst, in microseconds
--
-- Returns {1, time, debt, rev, taken, units}  taken, now or by an earlier sending. debt, in microseconds, and
--                                            taken are those just after the caller's units. rev: 0 if the rate
--                                            is the caller's, else that of the rate of the limit, which
--                                            follows then: count, period, burst. A debt is at most ever: see
--                                            state.lua
--         {0, time, debt, rev, taken, 0}     the wait would be longer
--         {2, time, debt, rev, taken, 0}     more units than burst
--         {-1, time}                         late: nothing was done

local status, wait = 1, debt + units * unit - whole
local id = ' ' .. ARGV[2]
local at = string.find(requests, id, 1, true)
if at then
  -- An earlier sending has taken them. Those behind it in the debt came later.
  for later in string.gmatch(string.sub(requests, 1, at - 1), '%S+') do
    local n = tonumber(string.match(later, ':(%d+)$') or 1)
    debt, taken = debt - n * unit, taken - n
  end
  units = tonumber(string.match(requests, '^ %w+:(%d+)', at) or 1)
elseif units == 0 then
  changed = rev > 0 or to and state
else
  -- A microsecond more is allowed, since fractions of one are rounded.
  if wait > ARGV[5] + 1 and least < units then
    units = math.max(math.floor((whole - debt + 1) / unit), least)
    wait = debt + units * unit - whole
  end
  if least * unit > whole + 1 then
    status, units = 2, 0
  elseif wait > ARGV[5] + 1 then
    status, units = 0, 0
  else
    debt, taken, changed = debt + units * unit, taken + units, true
    requests = id .. (units > 1 and ':' .. units or '') .. (string.match(requests, '^ %S+ %S+') or requests)
  end
end
answer = {status, now, math.min(math.ceil(debt), ever), rev, taken + 0, units, count, period, burst}
