-- Makes a new member. It runs after failed.lua, token.lua and table.lua, in one script with them.
--
-- KEYS[1], KEYS[2] the members and the table: see table.lua
-- KEYS[3] the last token given
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the member
-- ARGV[3] the lease, in ms
-- ARGV[4] how many shards there are
-- ARGV[5] how long the token is kept, in ms; 0: for ever
-- ARGV[6] what the member says of itself: "<weight> <n> <identity><value>"
-- ARGV[7] how long the table is kept at least, in ms
-- ARGV[8] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[9] the channel
--
-- Returns {1, time, time to live in ms, token}  it is a member, now or by an earlier sending
--         {0, time, 0, how many}                other members say that there are that many shards
--         {-1, time}                            late: nothing was done

local member, life = ARGV[2], redis.call('PTTL', KEYS[1])
local size = redis.call('HGET', KEYS[2], 'size')
if size and size ~= ARGV[4] then
  local _, n = living()
  if n > 0 then
    return {0, now, 0, tonumber(size)}
  end
  redis.call('DEL', KEYS[2])
end

local token = advance(3, clock, ARGV[5], 0)
local kept = redis.call('PTTL', KEYS[2])
local rev = redis.call('HGET', KEYS[2], 'rev') or '0'
redis.call('HSET', KEYS[2], 'size', ARGV[4], 'rev', rev, member, token .. ' ' .. ARGV[6])
local failure = failed('PEXPIRE', redis.pcall('PEXPIRE', KEYS[2], text(math.max(kept, ARGV[7]))))
if failure then
  -- Nothing must stay without an expiry, whichever commands are refused.
  if type(redis.pcall('HDEL', KEYS[2], member, kept == -2 and 'size' or '', kept == -2 and 'rev' or '')) == 'table' and kept == -2 then
    redis.call('SET', KEYS[2], '', 'PX', 1)
  end
  return failure
end

-- The lease begins anew if an earlier sending has made the member: it counts from the sending that is answered.
local ends = math.max(ms + tonumber(ARGV[3]), tonumber(redis.call('ZSCORE', KEYS[1], member) or 0))
failure = failed('ZADD', redis.pcall('ZADD', KEYS[1], text(ends), member))
  or failed('PEXPIRE', redis.pcall('PEXPIRE', KEYS[1], text(math.max(life, ends - ms))))
if failure then
  if type(redis.pcall('ZREM', KEYS[1], member)) == 'table' and life == -2 then
    redis.pcall('SET', KEYS[1], '', 'PX', 1)
  end
  redis.pcall('HDEL', KEYS[2], member)
  return failure
end
publish(ARGV[8], ARGV[9], turn())
return {1, now, ends - ms, tonumber(token)}
