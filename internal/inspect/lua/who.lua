-- Returns what Clients say of themselves and of their holds. It only reads.
--
-- KEYS[1] and on: what a Client says: see engine/lua/present.lua. One for each owner that is asked for
-- ARGV[1] not-after: ignored
-- ARGV[2] and on: the number of the owner, one for each of the keys
--
-- Returns {1, time, who, note, who, note, ...}  '': the Client does not say so
local reply = {1, now}
for i = 1, #KEYS do
  local said = redis.pcall('HMGET', KEYS[i], 'who', ARGV[i + 1])
  reply[#reply + 1] = said[1] or ''
  reply[#reply + 1] = said[2] or ''
end
return reply
