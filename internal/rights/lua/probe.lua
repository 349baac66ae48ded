-- Tries commands, and returns those that are refused for want of rights. What it makes is gone
-- after a second. If Redis refuses PEXPIRE, it makes nothing.
--
-- KEYS[1] a key that nobody uses
-- KEYS[2..] others that are only named: Redis checks the rights on those too
-- ARGV[1] not-after: ignored
-- ARGV[2..] the commands, in lower case
--
-- Returns {1, time, the commands that are refused, with spaces between}

local key = KEYS[1]
local arguments = {
  get = {}, set = {'1', 'PX', 1000}, del = {}, exists = {}, pttl = {}, pexpire = {1000},
  pexpireat = {string.format('%.0f', math.floor(now / 1000) + 1000)},
  incrby = {1}, decrby = {1}, decr = {},
  hset = {'f', '1'}, hget = {'f'}, hdel = {'f'}, hlen = {}, hexists = {'f'}, hgetall = {}, hscan = {0},
  zadd = {1, 'm'}, zrem = {'m'}, zcard = {}, zscore = {'m'}, zrank = {'m'},
  zcount = {0, 1}, zrange = {0, 0}, zrevrange = {0, 0}, zrangebyscore = {0, 1}, zremrangebyrank = {0, 0},
}

local function refused(command, ...)
  local reply = redis.pcall(command, key, ...)
  local text = type(reply) == 'table' and reply.err
  -- The error texts of Redis 6 and 7.0, of Redis 7.2 and later, and of servers that answer with a
  -- code.
  return text and (string.find(text, 'NOPERM', 1, true)
    or string.find(text, "can't run this command", 1, true)
    or string.find(text, "can't access", 1, true)
    or string.find(text, 'ACL failure', 1, true)) and true or false
end

local denied = {}
local expires = not refused('pexpire', 1000)
if not expires then
  denied[1] = 'pexpire'
end
for i = 2, #ARGV do
  local command = ARGV[i]
  if expires and refused(command, unpack(arguments[command])) then
    denied[#denied + 1] = command
  end
  if expires then
    redis.pcall('pexpire', key, 1000)
  end
end
return {1, now, table.concat(denied, ' ')}
