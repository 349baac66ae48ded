-- Renews the writer's hold. It never shortens the time to live.
--
-- KEYS[1] the lock
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the owner
-- ARGV[3] the least time to live of the lock afterwards, in ms; 0: only look
--
-- Returns {1, time, time to live in ms}  the owner holds the write side; -1: without end
--         {0, time}                      the owner does not hold the write side
--         {-1, time}                     late: nothing was done

if redis.call('HEXISTS', KEYS[1], ARGV[2] .. ':write') == 0 then
  return {0, now}
end

local ttl, lease = redis.call('PTTL', KEYS[1]), tonumber(ARGV[3])
if lease > 0 then
  -- It runs even if it changes nothing: a WAIT that follows counts only what its connection has
  -- written, and the hold may not have reached any replica yet.
  ttl = math.max(ttl, lease)
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', ttl))
end
return {1, now, ttl}
