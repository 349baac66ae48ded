-- Renews the lock for its writer, and never shortens its time to live.
--
-- KEYS[1] the lock
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the owner
-- ARGV[3] the least time to live that the lock is to have, in ms; 0: only look
--
-- Returns {1, time, time to live in ms}  the owner holds the write side; -1: without end
--         {0, time}                      it does not
--         {-1, time}                     late: nothing was done
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if now > tonumber(ARGV[1]) then
  return {-1, now}
end
if redis.call('HEXISTS', KEYS[1], ARGV[2] .. ':write') == 0 then
  return {0, now}
end

local ttl, lease = redis.call('PTTL', KEYS[1]), tonumber(ARGV[3])
if lease > 0 then
  -- Also where it changes nothing: a WAIT that follows counts from what its
  -- connection has written, and what is there may be on no replica.
  ttl = math.max(ttl, lease)
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', ttl))
end
return {1, now, ttl}
