-- Writes who the leader is, unless that is written, and returns whether it is asked to resign.
-- The leader runs this when its term begins, and as the poll of its term.
--
-- KEYS[1] the lock: a hash {owner: count} with an expiry
-- KEYS[2] the record of the leader: a hash of owner, token, since, priority, identity, value; and,
--         if somebody has asked the leader to resign, asked: who, in words. It counts only while
--         its owner has the lock
-- KEYS[3] what the candidates say of themselves: see candidate.lua
-- KEYS[4] the queue: a sorted set {owner: number}
-- KEYS[5] the pause of the name: see internal/pause/lua/begin.lua
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the owner
-- ARGV[3] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[4] the channel of changes
-- ARGV[5] the token of the term
-- ARGV[6] when it began to lead, in microseconds of the server's clock; 0: now
-- ARGV[7] how long the record stays, in ms
-- ARGV[8] the priority
-- ARGV[9] the identity
-- ARGV[10] the value
--
-- Returns {1, time, since, asked}  the owner leads. asked: who asks it to resign, in words; '':
--                                  nobody does
--         {2, time, text}          the owner has the lock, and nobody may lead now: the lines of the pause
--         {0, time}                the owner does not have the lock
--         {-1, time}               late: nothing was done
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
  return {0, now}
end
local pause = redis.call('GET', KEYS[5])
if pause and string.sub(pause, 1, 1) ~= '-' then
  return {2, now, pause}
end
local record = redis.call('HMGET', KEYS[2], 'owner', 'since', 'asked')
if record[1] == ARGV[2] then
  if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[7]) / 2 then
    redis.call('PEXPIRE', KEYS[2], ARGV[7])
  end
  return {1, now, record[2], record[3] or ''}
end

-- DEL comes first, and runs even if it finds nothing: Redis allows it when memory is short, and
-- after it the other writes too. It also takes away what an earlier leader was asked.
redis.call('DEL', KEYS[2])
local since = ARGV[6] == '0' and string.format('%.0f', now) or ARGV[6]
redis.call('HSET', KEYS[2], 'owner', ARGV[2], 'token', ARGV[5], 'since', since,
  'priority', ARGV[8], 'identity', ARGV[9], 'value', ARGV[10])
local expiry = redis.pcall('PEXPIRE', KEYS[2], ARGV[7])
if type(expiry) == 'table' then
  redis.call('DEL', KEYS[2]) -- DEL has just been allowed
  expiry.err = expiry.err .. " ('PEXPIRE')"
  return expiry
end

-- A leader is no candidate any more; nor are those whose places have lapsed.
redis.pcall('HDEL', KEYS[3], ARGV[2])
local names, places = redis.pcall('HLEN', KEYS[3]), redis.pcall('ZCARD', KEYS[4])
if type(names) == 'number' and type(places) == 'number' and names > places then
  for _, owner in ipairs(redis.call('HKEYS', KEYS[3])) do
    if not redis.call('ZSCORE', KEYS[4], owner) then
      redis.call('HDEL', KEYS[3], owner)
    end
  end
end
publish(ARGV[3], ARGV[4], '0')
return {1, now, since, ''}
