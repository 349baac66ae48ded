-- Renews the leases of permits, and never shortens one.
--
-- KEYS[1] the permits that are taken: a sorted set of ids by the ms of their expiry
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the least time to live that they are to have, in ms; 0: only look
-- ARGV[3] and on: the ids
--
-- Returns {1, time, time to live in ms}  all are taken
--         {0, time}                      one is not, or its lease is over
--         {-1, time}                     late: nothing was done
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if now > tonumber(ARGV[1]) then
  return {-1, now}
end

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
  -- There and back, since something must be written: a WAIT that follows counts from
  -- what its connection has written, and what is there may be on no replica.
  local score = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[3]))
  longer = {string.format('%.0f', score + 1), ARGV[3], string.format('%.0f', score), ARGV[3]}
end
if #longer > 0 then
  -- No id is empty: this only makes ZADD pass when memory is short, as anything
  -- does after a first write.
  redis.call('ZREM', KEYS[1], '')
  redis.call('ZADD', KEYS[1], 'XX', unpack(longer))
end
-- At most some thirty years, which fit into a time.Duration.
return {1, now, math.min(least - ms, 1e12)}
