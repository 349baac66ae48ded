-- Lets a party arrive. The last one trips the barrier; each other gets a place, which lasts as long
-- as its lease. It runs after generation.lua, in one script with it.
--
-- KEYS[1] the record, KEYS[2] the places: see generation.lua
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the owner that arrives
-- ARGV[3] the lease, in ms
-- ARGV[4] how many parties the barrier is for
-- ARGV[5] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[6] the channel
-- ARGV[7] the greatest generation that is over, as far as the party's process knows; 0: it knows none
--
-- Returns {1, time, time to live in ms, generation, arrival}  it has a place, now or by an earlier
--                                                             sending
--         {0, time, 0, generation, arrival, 1}  the generation in which it has arrived, now or by an
--                                               earlier sending, has tripped
--         {0, time, 0, generation, arrival, 2}  it has broken since
--         {0, time, 0, generation, arrival, 3}  how it ended is not known any more
--         {0, time, 0, parties, 0, 4}           the generation under way is for that many parties
--         {0, time, 0, 0, 0, 5}                 this owner has left
--         {-1, time}                            late: nothing was done
local owner, lease, parties = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local had = redis.call('HGET', KEYS[1], owner)
local expiry = math.max(tonumber(redis.call('ZSCORE', KEYS[2], owner) or 0), ms + lease)
local broke = sweep()

if had then
  local id, arrival = parse(had)
  if broke then
    publish(ARGV[5], ARGV[6], '0')
  end
  if not id then
    return {0, now, 0, 0, 0, 5}
  end
  local stands = how(id, had)
  if stands ~= 0 then
    return {0, now, 0, id, arrival, stands}
  end
  redis.call('ZADD', KEYS[2], text(expiry), owner)
  return {1, now, expiry - ms, id, arrival}
end
local ended = tonumber(ARGV[7])
if current.open and current.id <= ended then
  -- It is over, and this server has forgotten that: the parties whose places are here have gone on.
  breaks()
  broke = true
end
if current.open and current.parties ~= parties then
  return {0, now, 0, current.parties, 0, 4}
end

local id, arrived, since = current.id, current.arrived + 1, current.since
if not current.open then
  id, arrived = math.max(current.id + 1, ended + 1, now), 1
  since = since > 0 and since or id
end
local arrival = parties - arrived

-- The place comes before the party: a party without a place would never be missed. The last one
-- needs none, and is remembered for as long as one would last.
local member = arrival == 0 and 'left:' .. owner or owner
local failure = failed('ZADD', redis.pcall('ZADD', KEYS[2], text(expiry), member))
if failure then
  return failure
end
local lasts = text(math.max(day, 2 * lease))
failure = failed('PEXPIRE', redis.pcall('PEXPIRE', KEYS[2], lasts))
local state, entry = arrival == 0 and 'tripped' or 'open', text(id) .. ' ' .. text(arrival)
if not failure and current.trip then
  -- The newest generation becomes one of the earlier ones.
  failure = failed('HSET', redis.pcall('HSET', KEYS[1], 'generation', text(id), 'state', state, 'parties', text(parties),
    'arrived', text(arrived), 'since', text(since), owner, entry, 'tripped', (appended(current.tripped, current.id))))
elseif not failure then
  failure = failed('HSET', redis.pcall('HSET', KEYS[1], 'generation', text(id), 'state', state, 'parties', text(parties),
    'arrived', text(arrived), 'since', text(since), owner, entry))
end
if failure then
  -- Nothing must stay without an expiry, whichever commands are refused.
  if failed('ZREM', redis.pcall('ZREM', KEYS[2], member)) and redis.pcall('PTTL', KEYS[2]) == -1 then
    redis.pcall('SET', KEYS[2], '', 'PX', 1)
  end
  return failure
end
failure = failed('PEXPIRE', redis.pcall('PEXPIRE', KEYS[1], lasts))
if failure and life < 0 then
  -- The record must never be left without an expiry.
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', KEYS[2], member)
  return failure
end
if arrival == 0 or broke then
  publish(ARGV[5], ARGV[6], '0')
end
if arrival == 0 then
  return {0, now, 0, id, 0, 1}
end
return {1, now, lease, id, arrival}
