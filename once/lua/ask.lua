-- Asks for the work of one key: a new owner is granted it, unless another does it, or its result is
-- kept. It runs after token.lua, in one script with it.
--
-- KEYS[1] the record: a hash with an expiry. While the work is done it has the fields <owner>,
--         token and, if there is a fingerprint, payload. Once it is done: by (the owner), token,
--         payload, and result or error
-- KEYS[2] the last token given
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the owner that asks
-- ARGV[3] the lease, in ms
-- ARGV[4] how long the token is kept, in ms
-- ARGV[5] the fingerprint of the payload; '': none
--
-- Returns {1, time, time to live in ms, token}             granted, now or by an earlier sending
--         {0, time, time to live in ms, token, 0}          another owner does it; -1: no expiry
--         {0, time, time to live in ms, token, 1, result}  done
--         {0, time, time to live in ms, token, 2, text}    it has failed, with an error that is kept
--         {0, time, time to live in ms, token, 3}          its payload has another fingerprint
--         {-1, time}                                       late: nothing was done

local found = redis.call('HMGET', KEYS[1], ARGV[2], 'token', 'payload', 'by', 'result', 'error')
local ttl, lease = redis.call('PTTL', KEYS[1]), tonumber(ARGV[3])
local token = tonumber(found[2] or 0)

if found[1] and not found[4] then
  -- PEXPIRE runs even if it changes nothing. After a lost reply the call is sent again on a new
  -- connection, and a WAIT there counts only what that connection has written.
  ttl = math.max(ttl, lease)
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', ttl))
  return {1, now, ttl, token}
end
if ttl ~= -2 then
  if found[3] and ARGV[5] ~= '' and found[3] ~= ARGV[5] then
    return {0, now, ttl, token, 3}
  elseif found[4] and found[5] then
    return {0, now, ttl, token, 1, found[5]}
  elseif found[4] then
    return {0, now, ttl, token, 2, found[6] or ''}
  end
  return {0, now, ttl, token, 0}
end

-- The token is written before the record, so that nobody does the work without one.
local text = advance(2, clock, ARGV[4], 0)
token = tonumber(text)
if ARGV[5] == '' then
  redis.call('HSET', KEYS[1], ARGV[2], 1, 'token', text)
else
  redis.call('HSET', KEYS[1], ARGV[2], 1, 'token', text, 'payload', ARGV[5])
end
local expiry = redis.pcall('PEXPIRE', KEYS[1], ARGV[3])
if type(expiry) == 'table' then
  -- A record must never be left without an expiry, whichever commands are refused.
  if type(redis.pcall('HDEL', KEYS[1], ARGV[2], 'token', 'payload')) == 'table' then
    redis.call('SET', KEYS[1], '', 'PX', 1)
  end
  expiry.err = expiry.err .. " ('PEXPIRE')"
  return expiry
end
return {1, now, lease, token}
