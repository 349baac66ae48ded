-- Renews the lease of a number. It never shortens it, and never makes one. It runs after failed.lua and
-- numbers.lua, in one script with them.
--
-- KEYS[1] who has which number: see numbers.lua
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the owner
-- ARGV[3] the least time to live of the lease afterwards, in ms; 0: only look
--
-- Returns {1, time, time to live in ms}  it has a number
--         {0, time}                      it has none, or its lease is over
--         {-1, time}                     late: nothing was done

local ms = math.floor(now / 1000)
local has = redis.call('ZSCORE', KEYS[1], ARGV[2])
if not has then
  return {0, now}
end
local number, quarantine = parsed(has)
local back = tonumber(redis.call('ZSCORE', KEYS[1], text(number)) or 0)
if back - quarantine <= ms then
  return {0, now}
end
if ARGV[3] ~= '0' then
  -- PEXPIRE comes first: Redis allows it when memory is short, and after a first write it allows ZADD
  -- too. It runs even if it changes nothing: see acquire.lua.
  back = math.max(back, ms + tonumber(ARGV[3]) + quarantine)
  local life = math.max(redis.call('PTTL', KEYS[1]), back - ms)
  redis.call('PEXPIRE', KEYS[1], text(life))
  redis.call('ZADD', KEYS[1], 'XX', text(back), text(number))
end
return {1, now, math.min(back - quarantine - ms, 1e12)}
