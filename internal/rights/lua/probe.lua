-- Tries commands, and returns those that are refused for want of rights, or that the server does
-- not have, for example because they are renamed. What it makes is gone after a second. If Redis
-- refuses PEXPIRE, it makes nothing.
--
-- KEYS[1] a key that nobody uses
-- KEYS[2..] others that are only named: Redis checks the rights on those too
-- ARGV[1] not-after: ignored
-- ARGV[2..] the commands, in lower case
--
-- Returns {1, time, the commands that are refused, with spaces between}

-- What each command is tried with.
local tries = {
  get = function() return redis.pcall('GET', KEYS[1]) end,
  set = function() return redis.pcall('SET', KEYS[1], '1', 'PX', 1000) end,
  del = function() return redis.pcall('DEL', KEYS[1]) end,
  exists = function() return redis.pcall('EXISTS', KEYS[1]) end,
  pttl = function() return redis.pcall('PTTL', KEYS[1]) end,
  pexpire = function() return redis.pcall('PEXPIRE', KEYS[1], 1000) end,
  pexpireat = function() return redis.pcall('PEXPIREAT', KEYS[1], string.format('%.0f', math.floor(now / 1000) + 1000)) end,
  incrby = function() return redis.pcall('INCRBY', KEYS[1], 1) end,
  decrby = function() return redis.pcall('DECRBY', KEYS[1], 1) end,
  decr = function() return redis.pcall('DECR', KEYS[1]) end,
  hset = function() return redis.pcall('HSET', KEYS[1], 'f', '1') end,
  hget = function() return redis.pcall('HGET', KEYS[1], 'f') end,
  hdel = function() return redis.pcall('HDEL', KEYS[1], 'f') end,
  hlen = function() return redis.pcall('HLEN', KEYS[1]) end,
  hexists = function() return redis.pcall('HEXISTS', KEYS[1], 'f') end,
  hmget = function() return redis.pcall('HMGET', KEYS[1], 'f', 'g') end,
  hsetnx = function() return redis.pcall('HSETNX', KEYS[1], 'f', '1') end,
  hkeys = function() return redis.pcall('HKEYS', KEYS[1]) end,
  hgetall = function() return redis.pcall('HGETALL', KEYS[1]) end,
  hscan = function() return redis.pcall('HSCAN', KEYS[1], 0) end,
  zadd = function() return redis.pcall('ZADD', KEYS[1], 1, 'm') end,
  zrem = function() return redis.pcall('ZREM', KEYS[1], 'm') end,
  zcard = function() return redis.pcall('ZCARD', KEYS[1]) end,
  zscore = function() return redis.pcall('ZSCORE', KEYS[1], 'm') end,
  zrank = function() return redis.pcall('ZRANK', KEYS[1], 'm') end,
  zcount = function() return redis.pcall('ZCOUNT', KEYS[1], 0, 1) end,
  zrange = function() return redis.pcall('ZRANGE', KEYS[1], 0, 0) end,
  zrevrange = function() return redis.pcall('ZREVRANGE', KEYS[1], 0, 0) end,
  zrangebyscore = function() return redis.pcall('ZRANGEBYSCORE', KEYS[1], 0, 1) end,
  zrevrangebyscore = function() return redis.pcall('ZREVRANGEBYSCORE', KEYS[1], 1, 0) end,
  zremrangebyrank = function() return redis.pcall('ZREMRANGEBYRANK', KEYS[1], 0, 0) end,
}

local function refused(command)
  local reply = tries[command]()
  local text = type(reply) == 'table' and reply.err
  -- The error texts of Redis 6 and 7.0, of Redis 7.2 and later, and of servers that answer with a
  -- code.
  return text and (string.find(text, 'NOPERM', 1, true)
    or string.find(text, "can't run this command", 1, true)
    or string.find(text, "can't access", 1, true)
    or string.find(text, 'ACL failure', 1, true)
    or string.find(string.lower(text), 'unknown.-command')) and true or false
end

local denied = {}
local expires = not refused('pexpire')
if not expires then
  denied[1] = 'pexpire'
end
for i = 2, #ARGV do
  local command = ARGV[i]
  if expires and refused(command) then
    denied[#denied + 1] = command
  end
  if expires then
    tries.pexpire()
  end
end
return {1, now, table.concat(denied, ' ')}
