-- Tells whether a writer holds the lock, and whether one holder does.
--
-- KEYS[1] the lock
-- ARGV[1] not-after: not looked at
-- ARGV[2] what the timeout keys begin with
-- ARGV[3] the holder, as its field is called
--
-- Returns {1, time, a writer holds it, the holder's count}  1 or 0; 0: it does not hold it
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then
  return {1, now, 0, 0}
end
local count = tonumber(redis.call('HGET', KEYS[1], ARGV[3]) or 0) or 0
if count > 0 and string.sub(ARGV[3], -6) ~= ':write' and left(ARGV[2], ARGV[3], count) == -2 then
  count = 0
end
return {1, now, mode == 'write' and 1 or 0, count}
