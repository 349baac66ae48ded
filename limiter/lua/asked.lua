-- By which rate units are taken: the caller's, or that of the limit if that has a greater rev. It runs after state.lua,
-- and before turn.lua and take.lua, which has the contract.

local units, least, unit, whole = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[7]), tonumber(ARGV[8])
local rev, count, period, burst = 0, nil, nil, nil
if rate ~= ARGV[6] then
  to = ARGV[6]
  local theirs = rate and tonumber(string.match(rate, '%d+$')) or 0
  if theirs > tonumber(string.match(to, '%d+$')) then
    to, rev = nil, theirs
    count, period, burst = string.match(rate, '^(%d+) (%d+) (%d+)')
    count, period, burst = tonumber(count), tonumber(period), tonumber(burst)
    unit, whole = period / count, burst * period / count
    stays = month
  end
end
