-- Reads the count of a latch. The scripts that do not change the count begin with this file.
--
-- KEYS[1] the count
-- ARGV[1] not-after, in microseconds of the server's clock
--
-- Returns {-1, time}  late: nothing was done
--
-- The scripts after it use now; value and number, which are the count; text() and failed().

local value = redis.call('GET', KEYS[1])
if value and not string.match(value, '^%-?%d+$') then
  return redis.error_reply('WRONGTYPE the key holds no whole number')
end
local number = tonumber(value or 0)

-- text formats a number so that Redis can read it.
local function text(n)
  return string.format('%.0f', n)
end

-- failed returns the reply of a pcall if it is an error.
local function failed(reply)
  if type(reply) == 'table' and reply.err then
    return reply
  end
end

