-- Tells who holds the lock.
--
-- KEYS[1] the lock
-- ARGV[1] not-after: not looked at
-- ARGV[2] what the timeout keys begin with
--
-- Returns {1, time, time to live in ms, mode, holder, count, left in ms, ...}
--         time to live: -1: without end; -2: nobody holds it
--         left: a reader's own, -2 if it is over; a writer's is the lock's
local time = redis.call('TIME')
local ttl = redis.call('PTTL', KEYS[1])
local reply = {1, time[1] * 1000000 + time[2], ttl, redis.call('HGET', KEYS[1], 'mode') or ''}
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  local field, count = fields[i], fields[i + 1]
  if field ~= 'mode' then
    local lasts = ttl
    if string.sub(field, -6) ~= ':write' then
      lasts = left(ARGV[2], field, count) or ttl -- not known to be over
    end
    for _, value in ipairs({field, count, lasts}) do
      reply[#reply + 1] = value
    end
  end
end
return reply
