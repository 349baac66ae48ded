-- Passes the lock from one holder to another, with one lease on it.
--
-- KEYS[1] the lock
-- KEYS[2] the last token given, which is the hold's
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the holder that gives
-- ARGV[3] the holder that takes
-- ARGV[4] the least time to live that the lock is to have, in ms; 0: as it is
--
-- Returns {1, time, time to live in ms, token}  passed on, now or by an earlier sending
--         {0, time}                             neither holds it
--         {-1, time}                            late: nothing was done
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if now > tonumber(ARGV[1]) then
  return {-1, now}
end
local passed = redis.call('HEXISTS', KEYS[1], ARGV[3]) == 1
if not passed and redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
  return {0, now}
end

local token = tonumber(redis.call('GET', KEYS[2]) or 0)
local ttl, lease = redis.call('PTTL', KEYS[1]), tonumber(ARGV[4])
if ttl < lease then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  ttl = lease
end
if not passed then
  redis.call('HSET', KEYS[1], ARGV[3], 1)
  redis.call('HDEL', KEYS[1], ARGV[2])
end
return {1, now, ttl, token}
