-- Reads the count of a latch: the beginning of the scripts that change none.
--
-- KEYS[1] the count
-- ARGV[1] not-after, in microseconds of the server's clock
--
-- Returns {-1, time}  late: nothing was done
--
-- What follows it finds: now; value and number, the count; text() and failed().
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if now > tonumber(ARGV[1]) then
  return {-1, now}
end
local value = redis.call('GET', KEYS[1])
if value and not string.match(value, '^%-?%d+$') then
  return redis.error_reply('WRONGTYPE the key holds no whole number')
end
local number = tonumber(value or 0)

-- text writes a number as Redis reads it.
local function text(n)
  return string.format('%.0f', n)
end

-- failed returns the reply of a pcall if it is an error.
local function failed(reply)
  if type(reply) == 'table' and reply.err then
    return reply
  end
end

