-- Returns some of the holders of the lock. There may be many, and no call is to keep the server
-- busy for long. It runs after left.lua, in one script with it.
--
-- KEYS[1] the lock
-- ARGV[1] not-after: ignored
-- ARGV[2] what the timeout keys begin with
-- ARGV[3] where to go on: the cursor in the last reply; '0' to begin
-- ARGV[4] about how many fields to look at
--
-- Returns {1, time, cursor, holder, count, left in ms, ...}
--         cursor: '0': there are no more
--         left: -1: without end. A reader's is its own, -2 if it is over; a writer's is the
--         lock's

local reply = {1, now, '0'}
if redis.call('HEXISTS', KEYS[1], 'mode') == 0 then
  return reply -- nobody holds it, or it is a lock of another kind
end
local ttl = redis.call('PTTL', KEYS[1])
local page = redis.call('HSCAN', KEYS[1], ARGV[3], 'COUNT', ARGV[4])
local fields = page[2]
reply[3] = page[1]
for i = 1, #fields, 2 do
  local field, count = fields[i], fields[i + 1]
  if field ~= 'mode' then
    local lasts = ttl
    if string.sub(field, -6) ~= ':write' then
      lasts = left(ARGV[2], field, count) or ttl -- not known to be over
    end
    for _, value in ipairs({field, count, lasts}) do
      reply[#reply + 1] = value
    end
  end
end
return reply
