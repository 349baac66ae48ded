-- Looks, for a waiter that has a place in the queue, whether there is anything to ask for. If not,
-- it keeps the place, and the waiter waits on. It runs after life.lua, in one script with it.
--
-- KEYS[1] the lock: see enter.lua
-- KEYS[2], KEYS[3] the queue: KEYS[3] and KEYS[4] of queue.lua
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the owner that waits
-- ARGV[3] how long the place is kept, in ms
--
-- Returns {1, time, time to live of the lock in ms, mark}
--             another owner holds the lock, and the place is kept. A time to live of -1: it has no
--             expiry. The mark tells holders apart: the first 32 bits of the uuid and the last 20 of
--             the number behind it; 0: the holder has another form
--         {0, time}
--             only enter.lua can say more: the lock is free, or handed to a waiter that has not
--             asked since, or the owner's; or the place is lost, or cannot be kept
--         {-1, time}
--             late: nothing was done
local holder = redis.call('HGETALL', KEYS[1])
if #holder ~= 2 or holder[1] == ARGV[2] or holder[2] == '0' then
  return {0, now}
end
local ttl, keep = redis.call('PTTL', KEYS[1]), tonumber(ARGV[3])
if redis.call('PTTL', KEYS[3]) < life(keep) - keep then
  redis.call('PEXPIRE', KEYS[3], life(keep))
  redis.call('PEXPIRE', KEYS[2], life(keep))
end
local till = string.format('%.0f', math.floor(now / 1000) + keep)
local kept = redis.pcall('ZADD', KEYS[3], 'XX', 'CH', till, ARGV[2])
-- 0 may also say that it was kept in this same ms already.
if type(kept) == 'table' or kept == 0 and not redis.call('ZSCORE', KEYS[3], ARGV[2]) then
  return {0, now}
end
local client, number = string.match(holder[1], '^(%x%x%x%x%x%x%x%x)%-[%x%-]+:(%d+)$')
if not client or #number > 15 then
  return {1, now, ttl, 0}
end
return {1, now, ttl, tonumber(client, 16) * 1048576 + tonumber(number) % 1048576}
