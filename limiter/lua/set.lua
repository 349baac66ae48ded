-- Sets the rate of a limit, for all callers. What was taken stays taken, and those that wait come sooner or
-- later by the new rate. It runs after state.lua and rate.lua, in one script with them.
--
-- KEYS[1] the limit: see state.lua
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the rate, without its rev: "<count> <period> <burst>"
-- ARGV[3] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[4] the channel
-- ARGV[5] rev of the rate, as the caller has found it before
--
-- Returns {1, time, rev}  set
--         {0, time}       a rate was set since: by an earlier sending, or by another, and that one stays. Otherwise
--                         a request that is late would undo what others have set
--         {-1, time}      late: nothing was done

local _, rev = 0, 0
if rate then
  _, _, _, rev = parts(rate)
end
if rev > tonumber(ARGV[5]) then
  return {0, now}
end
rev = math.max(now, ARGV[5] + 1)
turn(ARGV[2] .. ' ' .. string.format('%.0f', rev))
write(month)
publish(ARGV[3], ARGV[4], string.format('%.0f', rev))
return {1, now, rev}
