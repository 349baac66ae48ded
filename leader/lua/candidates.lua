-- Returns some of the candidates that wait, in the order in which they would lead. There may be
-- many, and no call is to keep the server busy for long. A place that is no longer kept, because
-- its process is gone, is left out.
--
-- KEYS[1] the queue
-- KEYS[2] until when the places in it are kept
-- KEYS[3] what the candidates say of themselves: see candidate.lua
-- ARGV[1] not-after: ignored
-- ARGV[2] where to go on: the number in the last reply; '-inf' to begin
-- ARGV[3] how many places to look at
--
-- Returns {1, time, number, owner, said, owner, said, ...}
--             number: where to go on; '': there are no more
--             said: <priority> <identity>; '': it is not known

local reply = {1, now, ''}
local ms = math.floor(now / 1000)
local places = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[2], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[3])
for i = 1, #places, 2 do
  if tonumber(redis.call('ZSCORE', KEYS[2], places[i]) or 0) > ms then
    reply[#reply + 1] = places[i]
    reply[#reply + 1] = redis.call('HGET', KEYS[3], places[i]) or ''
  end
end
if #places == 2 * tonumber(ARGV[3]) then
  reply[3] = '(' .. places[#places]
end
return reply
