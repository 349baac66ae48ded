-- The generations of a barrier: the one under way, and how the earlier ones ended. Each begins with
-- its first party, and ends when the last party comes, or breaks. Numbers grow.
--
-- KEYS[1], the record, is a hash:
--   generation  the number of the newest generation
--   state       open, tripped or broken: how that generation stands
--   parties     how many it needs, and arrived: how many have come
--   broken      the numbers of the last hundred that have broken, with spaces around each
--   tripped     likewise of those that have tripped, except the newest
--   since       the number from which on broken is complete
--   <owner>     of a party: "<generation> <arrival>"; "left" once it has left
-- KEYS[2], the places, is a sorted set of the owners by the ms of their expiry; "left:<owner>" for a
-- party without a place, that is only remembered. While a party is in both, a call that is sent again
-- is answered as before; one that comes late finds that its owner has left, and does nothing.
--
-- This file uses now, and failed.lua before it. All reads of both keys come before the first write.
local ms = math.floor(now / 1000)
local day = 24 * 3600 * 1000


local found = redis.call('HMGET', KEYS[1], 'generation', 'state', 'parties', 'arrived', 'since', 'broken',
  'tripped')
local current = {
  id = tonumber(found[1] or 0),
  open = found[2] == 'open',
  trip = found[2] == 'tripped',
  parties = tonumber(found[3] or 0),
  arrived = tonumber(found[4] or 0),
  since = tonumber(found[5] or 0),
  broken = found[6] or ' ',
  tripped = found[7] or ' ',
}
local life, placesLife = redis.call('PTTL', KEYS[1]), redis.call('PTTL', KEYS[2])

-- parse returns the generation and the arrival of a party, or nothing if it has left.
local function parse(entry)
  local id, arrival = string.match(entry or '', '^(%d+) (%d+)$')
  return tonumber(id), tonumber(arrival)
end

-- ofDead reports whether one of some places that are over is of the generation under way: its party
-- has died.
local function ofDead(places)
  for i = 1, #places do
    if not string.find(places[i], 'left:', 1, true)
        and parse(redis.call('HGET', KEYS[1], places[i])) == current.id then
      return true
    end
  end
  return false
end

-- Some places that are over, which sweep takes out. A party that has died may be behind them, and
-- behind any number of parties that are only remembered: all are looked at, as many as a barrier can
-- have parties.
local over = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', text(ms), 'LIMIT', 0, 100)
local died = current.open and ofDead(over)
if current.open and #over == 100 then
  local first, all = 100, math.min(redis.call('ZCOUNT', KEYS[2], '-inf', text(ms)), 100000)
  while first < all and not died do
    died = ofDead(redis.call('ZRANGE', KEYS[2], first, math.min(first + 1000, all) - 1))
    first = first + 1000
  end
end

-- how returns the state of a generation: 0 open, 1 tripped, 2 broken, 3 not known. entry is that of one of its parties,
-- if there is one. After a failover that forgets, the numbers of generations that never were on this server lie among
-- those that were. So a generation has tripped only if this server has proof: the record says so; or one of its parties
-- has come, and the generation is neither open nor broken.
local function how(id, entry)
  local number = ' ' .. text(id) .. ' '
  if id == current.id and current.open then
    return 0
  elseif string.find(current.broken, number, 1, true) then
    return 2
  elseif id == current.id and current.trip or string.find(current.tripped, number, 1, true) then
    return 1
  elseif id < current.id and id >= current.since and parse(entry) == id then
    return 1
  end
  return 3
end

-- appended returns a list of numbers with one more, and the number that it has dropped for that, if any.
local function appended(list, id)
  list = list .. text(id) .. ' '
  if select(2, string.gsub(list, '%d+', '')) <= 100 then
    return list
  end
  local oldest, others = string.match(list, '^ (%d+)( .*)$')
  return others, tonumber(oldest)
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
  local broken, dropped = appended(current.broken, current.id)
  local since = dropped and dropped + 1 or current.since
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

