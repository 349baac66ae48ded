-- Returns who holds the lock.
--
-- KEYS[1] the lock
-- ARGV[1] not-after: ignored
--
-- Returns {1, time, time to live in ms, holder, count, holder, count, ...}
--         time to live: -1: no expiry; -2: nobody holds it

local reply = {1, now, redis.call('PTTL', KEYS[1])}
for _, text in ipairs(redis.call('HGETALL', KEYS[1])) do
  reply[#reply + 1] = text
end
return reply
