-- Passes the lock from one holder to another, with one lease on it.
--
-- KEYS[1] the lock
-- KEYS[2] the last token given, which is the hold's
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the holder that gives
-- ARGV[3] the holder that takes
-- ARGV[4] the least time to live that the lock is to have, in ms; 0: as it is
-- ARGV[5] how long a token is kept that has to be made anew, in ms
--
-- Returns {1, time, time to live in ms, token}  passed on, now or by an earlier sending
--         {0, time}                             neither holds it
--         {-1, time}                            late: nothing was done
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if now > tonumber(ARGV[1]) then
  return {-1, now}
end
local gives = redis.call('HEXISTS', KEYS[1], ARGV[2])
local takes = redis.call('HEXISTS', KEYS[1], ARGV[3])
if gives == 0 and takes == 0 then
  return {0, now}
end

local token = tonumber(redis.call('GET', KEYS[2]) or 0)
-- PEXPIRE comes first: it is allowed when memory is short, and after a first
-- write HSET is too.
local ttl, lease = redis.call('PTTL', KEYS[1]), tonumber(ARGV[4])
if lease > 0 then
  ttl = math.max(ttl, lease)
end
if ttl > 0 then
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', ttl))
end
if token == 0 then
  -- It has gone out of use while the lock was held: the next must be greater all
  -- the same.
  token = now
  redis.call('SET', KEYS[2], string.format('%.0f', token), 'PX', ARGV[5])
end
if takes == 0 then
  redis.call('HSET', KEYS[1], ARGV[3], 1)
end
if gives == 1 then
  local given = redis.pcall('HDEL', KEYS[1], ARGV[2])
  if type(given) == 'table' then
    -- Never two holders.
    redis.pcall('HDEL', KEYS[1], ARGV[3])
    return given
  end
end
return {1, now, ttl, token}
