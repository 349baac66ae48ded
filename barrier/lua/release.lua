-- Has a party leave. If its generation is open, that breaks. The owner is never used again, so this
-- may run late and any number of times. A request of the owner that comes later finds that it has
-- left. It runs after generation.lua, in one script with it.
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
  return {1, now}
end

-- That it has left is known for longer than a request of its own may come late. PEXPIRE comes first:
-- see keep. The party had a place, so both keys have an expiry; if it had none, they may be new.
local late = 2000
if life >= 0 then
  redis.call('PEXPIRE', KEYS[1], text(math.max(life, late)))
end
redis.call('ZREM', KEYS[2], owner)
local failure = redis.pcall('ZADD', KEYS[2], text(ms + late), 'left:' .. owner)
if not failed(failure) then
  failure = redis.pcall('HSET', KEYS[1], owner, 'left')
end
if redis.call('PTTL', KEYS[1]) == -1 then
  redis.call('PEXPIRE', KEYS[1], text(late))
end
if redis.call('PTTL', KEYS[2]) == -1 then
  redis.call('PEXPIRE', KEYS[2], text(day))
end
if id and failed(failure) then
  return failure
end
return {id and 1 or 0, now}
