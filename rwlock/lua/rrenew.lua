-- Renews the lock for one reader: its own timeout keys, and the lock as far as
-- they need it. It never shortens a time to live.
--
-- KEYS[1] the lock
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the owner
-- ARGV[3] the least time to live that the hold is to have, in ms; 0: only look
-- ARGV[4] what the timeout keys begin with
--
-- Returns {1, time, time to live of the hold in ms}  the owner holds a read side
--         {1, time, the same, ms}                    likewise; but for so long only the lock
--                                                    was to live: another client had cut it
--         {0, time}                                  it does not
--         {-1, time}                                 late: nothing was done
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if now > tonumber(ARGV[1]) then
  return {-1, now}
end
local count = redis.call('HGET', KEYS[1], ARGV[2])
local lasts, why = left(ARGV[4], ARGV[2], count)
if not lasts then
  return untold(why)
end
if lasts == -2 then
  return {0, now}
end

-- The lock comes first: a reader must not outlast it. And also where that changes
-- nothing: a WAIT that follows counts from what its connection has written, and
-- what is there may be on no replica. A lock without end keeps none.
local ttl, lease = redis.call('PTTL', KEYS[1]), tonumber(ARGV[3])
if lease > 0 and ttl ~= -1 then
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.max(ttl, lease, lasts)))
end
local reply = {1, now, math.max(lasts, lease)}
if ttl >= 0 and ttl + 100 < lasts then
  reply[4] = ttl
end
if lasts < lease then
  for i = 1, tonumber(count) do
    redis.call('PEXPIRE', ARGV[4] .. ARGV[2] .. ':rwlock_timeout:' .. i, ARGV[3])
  end
end
return reply
