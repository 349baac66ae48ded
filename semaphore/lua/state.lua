-- Returns how many permits are free, and how many are taken. A permit whose lease is over counts as
-- free, whether it has been taken back yet or not. So the script writes nothing.
--
-- KEYS[1] how many permits are free
-- KEYS[2] the permits that are taken: a sorted set of ids by the ms of their expiry
-- ARGV[1] not-after: ignored
--
-- Returns {1, time, how many are free, how many are taken}

local value = redis.call('GET', KEYS[1])
if value and not string.match(value, '^%-?%d+$') then
  return redis.error_reply('WRONGTYPE the key holds no whole number')
end
local over = redis.call('ZCOUNT', KEYS[2], '-inf', string.format('%.0f', math.floor(now / 1000)))
local taken = redis.call('ZCARD', KEYS[2]) - over
if not value then
  return {1, now, 0, taken}
end
return {1, now, tonumber(value) + over, taken}
