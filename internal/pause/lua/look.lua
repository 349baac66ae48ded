-- Returns whether a name is paused.
--
-- KEYS[1] the pause: see begin.lua
-- ARGV[1] not-after: ignored
--
-- Returns {1, time, text}  paused: the lines of the pause
--         {0, time}        it is not
local text = redis.call('GET', KEYS[1])
if not text or string.sub(text, 1, 1) == '-' then
  return {0, now}
end
return {1, now, text}
