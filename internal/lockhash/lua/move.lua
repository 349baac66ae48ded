-- Moves the lock from one owner to another, with one lease on it.
--
-- KEYS[1] the lock
-- KEYS[2] the last token given, which is this hold's
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the owner that gives the lock up
-- ARGV[3] the owner that takes it
-- ARGV[4] the least time to live of the lock afterwards, in ms; 0: leave it as it is
-- ARGV[5] how long the token is kept, in ms, if it has to be made anew
--
-- Returns {1, time, time to live in ms, token}  moved, now or by an earlier sending
--         {0, time}                             neither of them holds it
--         {-1, time}                            late: nothing was done

local gives = redis.call('HEXISTS', KEYS[1], ARGV[2])
local takes = redis.call('HEXISTS', KEYS[1], ARGV[3])
if gives == 0 and takes == 0 then
  return {0, now}
end

local token = tonumber(redis.call('GET', KEYS[2]) or 0)
-- PEXPIRE comes first: Redis allows it when memory is short, and after a first write it allows HSET
-- too.
local ttl, lease = redis.call('PTTL', KEYS[1]), tonumber(ARGV[4])
if lease > 0 then
  ttl = math.max(ttl, lease)
end
if ttl > 0 then
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', ttl))
end
if token == 0 then
  -- The token's key has expired while the lock was held. Write it again, so that the next token is
  -- greater all the same.
  token = now
  redis.call('SET', KEYS[2], string.format('%.0f', token), 'PX', ARGV[5])
end
if takes == 0 then
  redis.call('HSET', KEYS[1], ARGV[3], 1)
end
if gives == 1 then
  local given = redis.pcall('HDEL', KEYS[1], ARGV[2])
  if type(given) == 'table' then
    -- There must never be two holders.
    redis.pcall('HDEL', KEYS[1], ARGV[3])
    given.err = given.err .. " ('HDEL')"
    return given
  end
end
return {1, now, ttl, token}
