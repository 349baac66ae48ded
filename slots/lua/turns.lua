-- The marks that waiting owners leave, so that their processes take turns. This file comes before the
-- scripts that use the marks. They are the last two of KEYS:
--
-- KEYS[waiting]: a sorted set {owner: since when it waits}
-- KEYS[alive]: a sorted set {owner: until when its mark counts}
--
-- All times are in ms of the server's clock. Marks decide who goes first, never who has a number. So
-- a mark that cannot be written or taken away makes no call fail.

local waiting, alive = #KEYS - 1, #KEYS

-- unmark takes an owner's mark away, and returns whether it had one. alive goes last, and only if the
-- rest has gone: a mark that alive does not list would never be purged.
local function unmark(owner)
  local gone = redis.pcall('ZREM', KEYS[waiting], owner)
  if type(gone) ~= 'number' then
    return false
  end
  redis.pcall('ZREM', KEYS[alive], owner)
  return gone > 0
end

-- note writes one score at KEYS[k], and returns whether that and the key's expiry succeeded. Nothing
-- must stay without an expiry, whichever commands are refused.
local function note(k, only, score, owner, life)
  if type(redis.pcall('ZADD', KEYS[k], only, text(score), owner)) ~= 'number' then
    return false
  end
  local lives = type(redis.pcall('PEXPIRE', KEYS[k], text(life))) == 'number'
  if not lives and type(redis.pcall('ZREM', KEYS[k], owner)) == 'table' and redis.pcall('PTTL', KEYS[k]) == -1 then
    redis.pcall('SET', KEYS[k], '', 'PX', 1)
  end
  return lives
end

-- mark sets or refreshes an owner's mark. It uses NX for since, or the owner would lose its place.
-- alive goes first: a mark that alive does not list must not stay.
local function mark(owner, since, ms, life)
  if not (note(alive, 'CH', ms + life, owner, life) and note(waiting, 'NX', since, owner, life)) then
    unmark(owner)
  end
end

-- ahead returns three things of an owner that says that it has waited for waited ms, -1 if it only tries: how many
-- owners have waited for longer; how many ms the first of their marks still counts; and since when the owner waits. If
-- the owner has a mark, the mark decides: requests take longer or shorter, and an owner that saw itself in
-- another place than others see it could wait for them while they wait for it.
local function ahead(owner, waited, ms)
  local since = ms + 1
  if waited >= 0 then
    since = tonumber(redis.call('ZSCORE', KEYS[waiting], owner) or ms - waited)
  end
  local n = redis.call('ZCOUNT', KEYS[waiting], '-inf', '(' .. text(since))
  if n == 0 then
    return 0, 0, since
  end
  local till = redis.call('ZRANGE', KEYS[alive], 0, 0, 'WITHSCORES')[2] or ms
  return n, math.max(tonumber(till) - ms, 1), since
end

-- purge drops marks that nobody refreshes any more. It also drops marks that would count for longer
-- than any mark does: the clock has been set back since.
local function purge(ms)
  for _, owner in ipairs(redis.call('ZRANGEBYSCORE', KEYS[alive], '-inf', text(ms), 'LIMIT', 0, 64)) do
    unmark(owner)
  end
  for _, owner in ipairs(redis.call('ZRANGEBYSCORE', KEYS[alive], text(ms + 10000), '+inf', 'LIMIT', 0, 64)) do
    unmark(owner)
  end
end

