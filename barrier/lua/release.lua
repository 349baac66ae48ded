-- Takes a party out. If its generation is open, the generation breaks. The owner is never used
-- again, so this may run late and any number of times. A request of the owner that comes later
-- finds that it has left. It runs after generation.lua, in one script with it.
--
-- KEYS[1] the record, KEYS[2] the places: see generation.lua
-- ARGV[1] not-after: ignored
-- ARGV[2] the owner
-- ARGV[3] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[4] the channel
--
-- Returns {1, time}  it has left, now or by an earlier sending
--         {0, time}  it had no place
local owner = ARGV[2]
local entry = redis.call('HGET', KEYS[1], owner)
local broke = sweep()
local id = parse(entry)
if id and how(id) == 0 then
  breaks()
  broke = true
end
if broke then
  publish(ARGV[3], ARGV[4], '0')
end
if entry and not id then
  redis.call('ZREM', KEYS[2], owner) -- if an earlier sending has failed midway
  return {1, now}
end

-- That it has left is known for longer than a request of its own may come late. PEXPIRE comes first:
-- see keep. A key may have gone with what sweep took out, so each is given its expiry anew.
local late = 11000
if life >= 0 then
  redis.call('PEXPIRE', KEYS[1], text(math.max(life, late)))
end
local member = 'left:' .. owner
local failure = failed('ZADD', redis.pcall('ZADD', KEYS[2], text(ms + late), member))
  or failed('PEXPIRE', redis.pcall('PEXPIRE', KEYS[2], text(math.max(placesLife, day))))
  or failed('HSET', redis.pcall('HSET', KEYS[1], owner, 'left'))
  or failed('PEXPIRE', redis.pcall('PEXPIRE', KEYS[1], text(math.max(life, late))))
if not failure then
  redis.call('ZREM', KEYS[2], owner)
elseif id then
  redis.call('ZREM', KEYS[2], member) -- the release is sent again, or the place will be over
  return failure
else
  redis.call('ZREM', KEYS[2], member)
  redis.call('HDEL', KEYS[1], owner)
end
return {id and 1 or 0, now}
