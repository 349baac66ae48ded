-- Raises the last token given to at least that number. It never lowers it, so it
-- may run late and any number of times.
--
-- KEYS[1] the last token given
-- ARGV[1] not-after: not looked at
-- ARGV[2] the number
-- ARGV[3] how long the token is kept, in ms, where it is not kept for ever
--
-- Returns {1, time}
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if tonumber(redis.call('GET', KEYS[1]) or 0) < tonumber(ARGV[2]) then
  if redis.call('PTTL', KEYS[1]) == -1 then
    redis.call('SET', KEYS[1], ARGV[2])
  else
    redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
  end
end
return {1, now}
