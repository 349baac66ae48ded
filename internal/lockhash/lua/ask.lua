-- Asks the holder to give the lock up, and makes the holder's Client look.
--
-- KEYS[1] the lock
-- KEYS[2] the holder that is asked: a string
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[3] what the channels of the Clients begin with: see release.lua
--
-- Returns {1, time}   the holder is asked, for as long as it holds the lock without a renewal
--         {0, time}   nobody holds it
--         {-1, time}  late: nothing was done
--
-- Publishes on ARGV[3]:<Client>
--         0           look

local holder = redis.call('HGETALL', KEYS[1])
if #holder ~= 2 then
  return {0, now}
end
local ttl = redis.call('PTTL', KEYS[1])
if ttl < 0 then -- it has no expiry
  ttl = 86400000
end
redis.call('SET', KEYS[2], holder[1], 'PX', string.format('%.0f', math.max(ttl, 1)))
publish(ARGV[2], ARGV[3] .. ':' .. string.sub(holder[1], 1, 36), '0')
return {1, now}
