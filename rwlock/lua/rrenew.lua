-- Renews one reader's hold: its own timeout keys, and the lock as far as they need it. It never
-- shortens a time to live. It runs after left.lua, in one script with it.
--
-- KEYS[1] the lock
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the owner
-- ARGV[3] the least time to live of the hold afterwards, in ms; 0: only look
-- ARGV[4] what the timeout keys begin with
--
-- Returns {1, time, time to live of the hold in ms}  the owner holds the read side
--         {1, time, the same, ms}                    likewise; but the lock itself was to live
--                                                    for only that many ms: another client had
--                                                    cut its time to live
--         {0, time}                                  the owner does not hold the read side
--         {-1, time}                                 late: nothing was done

local count = redis.call('HGET', KEYS[1], ARGV[2])
local lasts, why = left(ARGV[4], ARGV[2], count)
if not lasts then
  return untold(why)
end
if lasts == -2 then
  return {0, now}
end

-- The lock comes first: a reader must not outlast it. PEXPIRE runs even if it changes nothing: a
-- WAIT that follows counts only what its connection has written, and the hold may not have reached
-- any replica yet. A lock without an expiry is given none.
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
