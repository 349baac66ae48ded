-- Forgets the result of a key, or a record that has no expiry and so would stay for ever. The next token
-- is greater all the same.
--
-- KEYS[1] the record: see ask.lua
-- KEYS[2] the last token given
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] how long the token is kept, in ms. One that is ahead of the clock is kept for longer by as much: see
--         token.lua
--
-- Returns {1, time}   there is no result, now or since an earlier sending
--         {0, time}   the work is being done: nothing was changed
--         {-1, time}  late: nothing was done
local found = redis.call('HMGET', KEYS[1], 'by', 'token')
local ttl = redis.call('PTTL', KEYS[1])
if ttl == -2 then
  return {1, now}
elseif not found[1] and ttl ~= -1 then
  return {0, now}
end
if found[2] then
  -- PEXPIRE comes first, and changes nothing: when memory is short, Redis then allows SET too.
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.max(ttl, 1)))
  local ahead = math.max(math.ceil((tonumber(found[2]) - now) / 1000), 0)
  redis.call('SET', KEYS[2], found[2], 'PX', string.format('%.0f', ARGV[2] + ahead))
end
redis.call('DEL', KEYS[1])
return {1, now}
