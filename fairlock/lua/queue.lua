-- Tells who waits for the lock, in their order. A place that is not kept any
-- more, because its process is gone, does not count.
--
-- KEYS[1] the queue
-- KEYS[2] until when the places in it are kept
-- ARGV[1] not-after: not looked at
--
-- Returns {1, time, owner, owner, ...}
local time = redis.call('TIME')
local reply = {1, time[1] * 1000000 + time[2]}
local ms = string.format('%.0f', math.floor(reply[2] / 1000))

local kept = {}
for _, owner in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. ms, '+inf')) do
  kept[owner] = true
end
for _, owner in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  if kept[owner] then
    reply[#reply + 1] = owner
  end
end
return reply
