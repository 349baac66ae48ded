-- Renews the leases of permits. It never shortens one.
--
-- KEYS[1] the permits that are taken: a sorted set of ids by the ms of their expiry
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the least time to live of the leases afterwards, in ms; 0: only look
-- ARGV[3] and on: the ids
--
-- Returns {1, time, time to live in ms}  all of them are taken
--         {0, time}                      one is not taken, or its lease is over
--         {-1, time}                     late: nothing was done

local ms = math.floor(now / 1000)
local expiry = ms + tonumber(ARGV[2])
local least, longer = math.huge, {}
for i = 3, #ARGV do
  local score = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[i]) or 0)
  if score <= ms then
    return {0, now}
  end
  if score < expiry then
    longer[#longer + 1] = string.format('%.0f', expiry)
    longer[#longer + 1] = ARGV[i]
  end
  least = math.min(least, math.max(score, expiry))
end
if #longer == 0 and expiry > ms then
  -- Moves one expiry on and back, since something must be written: a WAIT that follows counts only
  -- what its connection has written, and the leases may not have reached any replica yet.
  local score = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[3]))
  longer = {string.format('%.0f', score + 1), ARGV[3], string.format('%.0f', score), ARGV[3]}
end
if #longer > 0 then
  -- No id is empty, so this removes nothing. It only makes ZADD pass when memory is short: after a
  -- first write Redis allows the rest.
  redis.call('ZREM', KEYS[1], '')
  for i = 1, #longer, 2 do
    redis.call('ZADD', KEYS[1], 'XX', longer[i], longer[i + 1])
  end
end
-- Some thirty years at most, which fit into a time.Duration.
return {1, now, math.min(least - ms, 1e12)}
