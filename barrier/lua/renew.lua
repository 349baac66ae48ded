-- Renews the place of a party. It never shortens its time to live, and never makes a place.
--
-- KEYS[1] the places: a sorted set of owners by the ms of their expiry
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the owner
-- ARGV[3] the least time to live of the place afterwards, in ms; 0: only look
--
-- Returns {1, time, time to live in ms}  it has a place
--         {0, time}                      it has none, or its place is over
--         {-1, time}                     late: nothing was done

local ms = math.floor(now / 1000)
local score = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[2]) or 0)
if score <= ms then
  return {0, now}
end
local expiry = math.max(score, ms + tonumber(ARGV[3]))
if expiry > score then
  -- PEXPIRE comes first: Redis allows it when memory is short, and after a first write it allows
  -- ZADD too.
  local life = math.max(redis.call('PTTL', KEYS[1]), 2 * (expiry - ms))
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', life))
  redis.call('ZADD', KEYS[1], 'XX', string.format('%.0f', expiry), ARGV[2])
end
return {1, now, math.min(expiry - ms, 1e12)}
