-- The generations of a barrier: the one under way, and how the earlier ones ended. Each begins with
-- its first party, and ends when the last party comes, or breaks. Numbers grow.
--
-- KEYS[1], the record, is a hash:
--   generation  the number of the newest generation
--   state       open, tripped or broken: how that generation stands
--   parties     how many it needs, and arrived: how many have come
--   broken      the numbers of those that have broken, a hundred at the most, with spaces around
--               each. All others have tripped
--   since       the number from which on that is known
--   <owner>     of a party: "<generation> <arrival>"; "left" once it has left
-- KEYS[2], the places, is a sorted set of the owners by the ms of their expiry; "left:<owner>" for a
-- party without a place, that is only remembered. While a party is in both, a call that is sent again
-- is answered as before; one that comes late finds that its owner has left, and does nothing.
--
-- This file uses now. All reads of both keys come before the first write.
local ms = math.floor(now / 1000)
local day = 24 * 3600 * 1000

local function text(n)
  return string.format('%.0f', n)
end
local function failed(reply)
  return type(reply) == 'table' and reply.err
end

local found = redis.call('HMGET', KEYS[1], 'generation', 'state', 'parties', 'arrived', 'since', 'broken')
local current = {
  id = tonumber(found[1] or 0),
  open = found[2] == 'open',
  parties = tonumber(found[3] or 0),
  arrived = tonumber(found[4] or 0),
  since = tonumber(found[5] or 0),
  broken = found[6] or ' ',
}
local life, placesLife = redis.call('PTTL', KEYS[1]), redis.call('PTTL', KEYS[2])

-- parse returns the generation and the arrival of a party, or nothing if it has left.
local function parse(entry)
  local id, arrival = string.match(entry or '', '^(%d+) (%d+)$')
  return tonumber(id), tonumber(arrival)
end

-- Some places that are over, and whether one is of the generation under way: its party has died.
local over, died = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', text(ms), 'LIMIT', 0, 100), false
for i = 1, #over do
  if current.open and parse(redis.call('HGET', KEYS[1], over[i])) == current.id then
    died = true
  end
end

-- how returns how a generation stands: 0 open, 1 tripped, 2 broken, 3 not known any more.
local function how(id)
  if id == current.id and current.open then
    return 0
  elseif id > current.id or id < current.since then
    return 3
  elseif string.find(current.broken, ' ' .. text(id) .. ' ', 1, true) then
    return 2
  end
  return 1
end

-- keep puts off the expiry of the record, and of the places, if less than half of its time is left.
-- Redis allows it when memory is short, and after a first write it allows the rest too.
local function keep()
  if life >= 0 and life < day / 2 then
    redis.call('PEXPIRE', KEYS[1], text(day))
    redis.call('PEXPIRE', KEYS[2], text(day))
  end
end

-- breaks breaks the generation under way.
local function breaks()
  local broken, since = current.broken .. text(current.id) .. ' ', current.since
  if select(2, string.gsub(broken, '%d+', '')) > 100 then
    local oldest, others = string.match(broken, '^ (%d+)( .*)$')
    broken, since = others, tonumber(oldest) + 1
  end
  redis.call('PEXPIRE', KEYS[1], text(math.max(life, 1)))
  redis.call('HSET', KEYS[1], 'state', 'broken', 'broken', broken, 'since', text(since))
  current.open, current.broken, current.since = false, broken, since
end

-- sweep breaks the generation under way if one of its parties has died, and takes out the places
-- that are over. It reports whether the generation has broken.
local function sweep()
  if died then
    breaks()
  end
  for i = 1, #over do
    redis.call('ZREM', KEYS[2], over[i])
    redis.call('HDEL', KEYS[1], string.match(over[i], '^left:(.*)$') or over[i])
  end
  return died
end

