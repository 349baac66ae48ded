-- Sets how many leases a reader has on the lock: its count, and its timeout keys 1 to count, all of
-- which last as long as the hold. The count is absolute, so a call that is sent twice counts once.
-- It never makes a hold. It runs after left.lua, in one script with it.
--
-- KEYS[1] the lock
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the owner
-- ARGV[3] the count
-- ARGV[4] the least time to live of the hold afterwards, in ms; 0: leave it as it is
-- ARGV[5] what the timeout keys begin with
--
-- Returns {1, time, time to live of the hold in ms}  done
--         {0, time}                                  the owner does not hold the read side
--         {-1, time}                                 late: nothing was done

local before = tonumber(redis.call('HGET', KEYS[1], ARGV[2]) or 0)
local lasts, why = left(ARGV[5], ARGV[2], before, true)
if not lasts then
  return untold(why)
end
if lasts == -2 then
  return {0, now}
end

-- PEXPIRE comes first, and runs even if it changes nothing: Redis allows it when memory is short,
-- and after a first write it allows SET and HSET too. A lock without an expiry is given none. A
-- hold without an end is given one only if ARGV[4] asks for it.
local least = tonumber(ARGV[4])
if lasts ~= -1 or least > 0 then
  lasts = math.max(lasts, least)
end
local ttl = redis.call('PTTL', KEYS[1])
if ttl ~= -1 and math.max(ttl, lasts) > 0 then
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.max(ttl, lasts)))
end
local count = tonumber(ARGV[3])
for i = 1, count do
  local timeout = ARGV[5] .. ARGV[2] .. ':rwlock_timeout:' .. i
  if redis.call('PTTL', timeout) < lasts then
    if lasts < 0 then
      redis.call('SET', timeout, '1')
    else
      redis.call('SET', timeout, '1', 'PX', string.format('%.0f', math.max(lasts, 1)))
    end
  end
end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
for i = count + 1, before do
  redis.call('DEL', ARGV[5] .. ARGV[2] .. ':rwlock_timeout:' .. i)
end
return {1, now, lasts}
