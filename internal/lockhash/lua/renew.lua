-- Renews the owner's hold. It never shortens the time to live.
--
-- KEYS[1] the lock
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the field of the hold: the owner, or for a writer of a read-write lock <owner>:write
-- ARGV[3] the least time to live of the lock afterwards, in ms; 0: only look
--
-- Returns time                           renewed; the time to live is ARGV[3]
--         {1, time, time to live in ms}  the owner holds it; time to live -1: no expiry
--         {0, time}                      the owner does not hold it
--         {-1, time}                     late: nothing was done

local count = redis.call('HGET', KEYS[1], ARGV[2])
if not count then
  return {0, now}
end

local lease, usual = tonumber(ARGV[3]), false
local ttl = lease
if lease > 0 then
  -- A server that is older than Redis 7.0 refuses GT.
  usual = redis.pcall('PEXPIRE', KEYS[1], ARGV[3], 'GT') == 1
end
if not usual then
  ttl = redis.call('PTTL', KEYS[1])
  if lease > 0 then
    -- It runs even if it changes nothing: a WAIT that follows counts only what its connection has
    -- written, and the hold may not have reached any replica yet.
    ttl = math.max(ttl, lease)
    redis.call('PEXPIRE', KEYS[1], string.format('%.0f', ttl))
  end
end
if count == '0' and lease > 0 then
  -- It was handed the lock by a message. From now on a waiter's look finds a holder like any other. If
  -- memory is short, that stays as it is.
  redis.pcall('HSET', KEYS[1], ARGV[2], '1')
end
if usual then
  return now
end
return {1, now, ttl}
