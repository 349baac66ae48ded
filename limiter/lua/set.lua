-- Sets the rate of a limit, for all callers. What was taken stays taken, and those that wait come sooner or
-- later by the new rate. It runs between state.lua and turn.lua, in one script with them.
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

if rate and tonumber(string.match(rate, '%d+$')) > tonumber(ARGV[5]) then
  return {0, now}
end
local rev = math.max(now, ARGV[5] + 1)
local text = string.format('%.0f', rev)
to = ARGV[2] .. ' ' .. text
changed, stays, answer = true, month, {1, now, rev}
publish(ARGV[3], ARGV[4], text)
