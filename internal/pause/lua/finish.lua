-- Ends a pause, for those who resume, or undoes one whose caller was not answered: then the pause that it has replaced goes
-- on. It may run late and any number of times: no other pause has the id.
--
-- KEYS[1] the pause: see begin.lua
-- ARGV[1] not-after: ignored
-- ARGV[2] the id of the pause
-- ARGV[3] how long its lines are kept against requests that come late, in ms
-- ARGV[4] '1': the pause that it has replaced goes on
--
-- Returns {1, time}  it has ended
--         {0, time}  it is not there
local was = redis.call('GET', KEYS[1])
local head, earlier = string.match(was or '', '^([^\n]*\n[^\n]*\n[^\n]*\n[^\n]*\n[^\n]*)\n(.+)$')
if ARGV[4] == '1' and earlier and string.sub(earlier, 1, #ARGV[2] + 1) == ARGV[2] .. '\n' then
  redis.call('SET', KEYS[1], head, 'KEEPTTL') -- it was replaced since: an undo of that one shall not bring it back
  return {1, now}
end
if not was or string.sub(was, 1, #ARGV[2] + 1) ~= ARGV[2] .. '\n' then
  return {0, now}
end
local left = earlier and tonumber(string.match(earlier, '^[^\n]*\n[^\n]*\n([^\n]*)')) - math.floor(now / 1000) or 0
if ARGV[4] == '1' and left > 0 then
  redis.call('SET', KEYS[1], earlier, 'PX', string.format('%.0f', left))
else
  redis.call('SET', KEYS[1], '-' .. was, 'PX', ARGV[3])
end
return {1, now}
