-- Sets when the lease of one permit is over, sooner or later than it would be.
--
-- KEYS[1] the permits that are taken: a sorted set of ids by the ms of their expiry
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the lease from now, in ms
-- ARGV[3] the id
--
-- Returns {1, time}   done
--         {0, time}   it is not taken, or its lease is over
--         {-1, time}  late: nothing was done

local ms = math.floor(now / 1000)
if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[3]) or 0) <= ms then
  return {0, now}
end
redis.call('ZREM', KEYS[1], '') -- see renew.lua
redis.call('ZADD', KEYS[1], 'XX', string.format('%.0f', ms + tonumber(ARGV[2])), ARGV[3])
return {1, now}
