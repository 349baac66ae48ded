-- Returns how many permits of a semaphore are free.
--
-- KEYS[1] how many permits are free
-- ARGV[1] not-after: ignored
--
-- Returns {1, time, how many; may be negative}

local value = redis.call('GET', KEYS[1])
if value and not string.match(value, '^%-?%d+$') then
  return redis.error_reply('WRONGTYPE the key holds no whole number')
end
return {1, now, tonumber(value or 0)}
