-- How a limit goes on by another rate. It runs after state.lua, in one script with it.

-- month is how long a rate that was set on the limit itself stays after a call, in ms.
local month = 30 * 24 * 3600 * 1000

-- parts returns the numbers of a rate.
local function parts(of)
  local count, period, burst, rev = string.match(of, '^(%d+) (%d+) (%d+) (%d+)$')
  return tonumber(count), tonumber(period), tonumber(burst), tonumber(rev)
end

-- turn makes that the rate. It keeps the debt in units, and those that wait in their order: callers whose turn is
-- near do not listen any more, so the time of the others changes only from there on.
local function turn(to)
  if rate and rate ~= to then
    local count, period, burst = parts(rate)
    local c, p, b = parts(to)
    local ahead = debt - burst * period / count
    local near = math.min(math.max(ahead, 0), 1250000)
    debt = (debt - near) / (period / count) * (p / c) + near
    if ahead > 0 then
      debt = debt + (b - burst) * p / c
    end
  end
  rate = to
end

