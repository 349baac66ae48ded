-- Returns how long the lease of one permit still lasts.
--
-- KEYS[1] the permits that are taken: a sorted set of ids by the ms of their expiry
-- ARGV[1] not-after: ignored
-- ARGV[2] the id
--
-- Returns {1, time, ms}  how long; -1: for ever
--         {0, time}      it is not taken, or its lease is over

local left = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[2]) or 0) - math.floor(now / 1000)
if left <= 0 then
  return {0, now}
elseif left > 1e12 then
  return {1, now, -1}
end
return {1, now, left}
