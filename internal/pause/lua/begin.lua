-- Pauses a name, unless this pause has begun before, or its end is over. An earlier pause of the name is kept behind it,
-- so that undo.lua can bring that back.
--
-- KEYS[1] the pause: lines of id, since (in microseconds of the server's clock), until (in ms), who and why, and behind
--         them those of the pause that it has replaced, with an expiry. If '-' is before them, nothing is paused: they
--         are kept for a while against requests that come late
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the id of the pause
-- ARGV[3] until when, in ms of the server's clock
-- ARGV[4] who
-- ARGV[5] why
--
-- Returns {1, time}   paused, now or by an earlier sending
--         {0, time}   the end is over: nothing was done
--         {-1, time}  late: nothing was done
local was = redis.call('GET', KEYS[1])
if was and string.find(was, ARGV[2], 1, true) then
  return {1, now}
end
local left = tonumber(ARGV[3]) - math.floor(now / 1000)
if left < 1 then
  return {0, now}
end
local text = table.concat({ARGV[2], string.format('%.0f', now), ARGV[3], ARGV[4], ARGV[5]}, '\n')
if was and string.sub(was, 1, 1) ~= '-' then
  text = text .. '\n' .. string.match(was, '^[^\n]*\n[^\n]*\n[^\n]*\n[^\n]*\n[^\n]*')
end
redis.call('SET', KEYS[1], text, 'PX', string.format('%.0f', left))
return {1, now}
