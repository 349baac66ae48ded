-- Removes what a Client says of itself: it closes. It is right at any time.
--
-- KEYS[1] what the Client says: see present.lua
-- ARGV[1] not-after: ignored
-- ARGV[2] until when a write that was not answered may still come, in microseconds of the server's
--         clock; 0: none can. Until then the key stays, with a version that no write replaces
--
-- Returns {1, time}
redis.call('DEL', KEYS[1])
local left = tonumber(ARGV[2]) - now
if left > 0 then
  redis.call('HSET', KEYS[1], 'version', '9007199254740991')
  local expiry = redis.pcall('PEXPIRE', KEYS[1], math.ceil(left / 1000) + 1)
  if type(expiry) == 'table' then
    -- What a Client says must never be left without an expiry.
    redis.call('DEL', KEYS[1])
    expiry.err = expiry.err .. " ('PEXPIRE')"
    return expiry
  end
end
return {1, now}
