-- The limit goes on by the rate to, if that is not nil. It keeps the debt in units, and those that wait in their order:
-- callers whose turn is near do not listen any more, so the time of the others changes only from there on.

if to then
  if rate then
    local count, period, burst = string.match(rate, '^(%d+) (%d+) (%d+)')
    local c, p, b = string.match(to, '^(%d+) (%d+) (%d+)')
    local ahead = debt - burst * period / count
    local near = math.min(math.max(ahead, 0), 1250000)
    debt = (debt - near) / (period / count) * (p / c) + near
    if ahead > 0 then
      debt = debt + (b - burst) * p / c
    end
  end
  rate = to
end
