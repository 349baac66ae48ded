-- Grants the lock to a new owner. It runs after token.lua, in one script with it.
--
-- KEYS[1] the lock: a hash {owner: count} with an expiry
-- KEYS[2] the last token given
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the owner that asks
-- ARGV[3] the lease, in ms
-- ARGV[4] how long the token is kept, in ms; 0: for ever
--
-- Returns time  granted now, with the lease that was asked for; the token is the time
--         {1, time, time to live in ms, token}  granted, now or by an earlier sending
--         {0, time, time to live in ms, last token, holder...}
--             another owner holds it; -1: it has no expiry. The holder, if it is the only one and is
--             a Client's or Redisson's, as four numbers: its uuid in three parts, of 48, 32 and 48
--             bits, and the number behind it
--         {-1, time}                            late: nothing was done

local ttl, lease, token = redis.call('PTTL', KEYS[1]), ARGV[3], nil
local free = ttl == -2
if not free then
  if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
    -- Nothing here may fail the try. A read/write lock may have very many fields.
    token = redis.pcall('GET', KEYS[2])
    token = type(token) == 'string' and tonumber(token) or 0
    local fields = redis.call('HEXISTS', KEYS[1], 'mode') == 0 and redis.pcall('HGETALL', KEYS[1]) or {}
    local a, b, c, d, e, n = string.match(#fields == 2 and fields[1] or '', '^(%x+)%-(%x+)%-(%x+)%-(%x+)%-(%x+):(%-?%d+)$')
    if not a or #n > 15 then
      return {0, now, ttl, token}
    end
    return {0, now, ttl, token, tonumber(a .. b, 16), tonumber(c .. d, 16), tonumber(e, 16), tonumber(n)}
  end
  token = redis.call('GET', KEYS[2])
  if ttl > tonumber(lease) then
    lease = string.format('%.0f', ttl)
  end
end

-- The token is written before the lock, so that no lock is left without one.
token = token or advance(2, clock, ARGV[4], 0)
if free then
  redis.call('HSET', KEYS[1], ARGV[2], '1')
end
-- PEXPIRE runs even if it changes nothing. After a lost reply the call is sent again on a new
-- connection, and a WAIT there counts only what that connection has written.
local expiry = redis.pcall('PEXPIRE', KEYS[1], lease)
if type(expiry) == 'table' then
  -- A lock must never be left without an expiry, whichever commands are refused.
  if type(redis.pcall('HDEL', KEYS[1], ARGV[2])) == 'table' and lease == ARGV[3] then
    redis.call('SET', KEYS[1], '', 'PX', 1)
  end
  expiry.err = expiry.err .. " ('PEXPIRE')"
  return expiry
end
if free and token == clock then
  return now
end
return {1, now, tonumber(lease), tonumber(token)}
