-- Returns whether a writer holds the lock, and how many leases one holder has on it. It runs after
-- left.lua, in one script with it.
--
-- KEYS[1] the lock
-- ARGV[1] not-after: ignored
-- ARGV[2] what the timeout keys begin with
-- ARGV[3] the holder's field
--
-- Returns {1, time, writer, count}  writer: 1 if a writer holds the lock, else 0
--                                   count: the holder's; 0: it does not hold the lock

local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then
  return {1, now, 0, 0}
end
local count = tonumber(redis.call('HGET', KEYS[1], ARGV[3]) or 0) or 0
if count > 0 and string.sub(ARGV[3], -6) ~= ':write' and left(ARGV[2], ARGV[3], count) == -2 then
  count = 0
end
return {1, now, mode == 'write' and 1 or 0, count}
