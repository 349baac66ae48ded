-- Raises the last token given to at least that number. It never lowers it, so it
-- may run late and any number of times.
--
-- KEYS[1] the last token given
-- ARGV[1] not-after: not looked at
-- ARGV[2] the number
-- ARGV[3] how long the token is kept, in ms, where it is not kept for ever. One ahead of
--         this server's clock is kept for as long as it is ahead besides: forgotten
--         before, it would be followed by a smaller one
--
-- Returns {1, time}
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if tonumber(redis.call('GET', KEYS[1]) or 0) < tonumber(ARGV[2]) then
  if redis.call('PTTL', KEYS[1]) == -1 then
    redis.call('SET', KEYS[1], ARGV[2])
  else
    local ahead = math.max(math.ceil((tonumber(ARGV[2]) - now) / 1000), 0)
    redis.call('SET', KEYS[1], ARGV[2], 'PX', string.format('%.0f', ARGV[3] + ahead))
  end
end
return {1, now}
