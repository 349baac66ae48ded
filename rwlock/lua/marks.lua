-- The marks that waiting owners leave beside a read/write lock, so that none of them is overtaken
-- for ever. This file comes before the scripts that use the marks. They are the last three of KEYS:
--
-- KEYS[readers], KEYS[writers]: sorted sets {owner: since when it waits}
-- KEYS[waiting]: a sorted set {owner: until when its mark counts}
--
-- All times are in ms of the server's clock. Marks decide who goes first, never who may hold the
-- lock. So a mark that cannot be written or taken away makes no call on the lock fail.

local readers, writers, waiting = #KEYS - 2, #KEYS - 1, #KEYS

-- unmark takes an owner's mark away, and returns whether it had one. waiting goes last, and only if
-- the rest has gone: a mark that waiting does not list would never be purged.
local function unmark(owner)
  local gone = 0
  for k = readers, waiting do
    local n = redis.pcall('ZREM', KEYS[k], owner)
    if type(n) ~= 'number' then
      break
    end
    gone = gone + n
  end
  return gone > 0
end

-- forget is unmark where mostly nobody waits: then it asks for one key, and not for all.
local function forget(owner)
  return redis.pcall('EXISTS', KEYS[waiting]) ~= 0 and unmark(owner)
end

-- place returns since when an owner waits that says it has waited for waited ms, and the prefix
-- that all owners of its process share. If the owner has a mark, the mark decides. Requests take
-- longer or shorter, and an owner that saw itself in another place than others see it could wait
-- for them while they wait for it. An owner that only tries has come last, behind everybody.
local function place(side, owner, waited, ms)
  if waited < 0 then
    return ms + 1, ''
  end
  return tonumber(redis.call('ZSCORE', KEYS[side], owner) or ms - waited), string.sub(owner, 1, 37)
end

-- note writes one score at KEYS[k], and returns whether that and the key's expiry succeeded. Nothing
-- must stay without an expiry, whichever commands are refused.
local function note(k, only, score, owner, life)
  if type(redis.pcall('ZADD', KEYS[k], only, string.format('%.0f', score), owner)) ~= 'number' then
    return false
  end
  local lives = type(redis.pcall('PEXPIRE', KEYS[k], string.format('%.0f', life))) == 'number'
  if not lives and type(redis.pcall('ZREM', KEYS[k], owner)) == 'table' and redis.pcall('PTTL', KEYS[k]) == -1 then
    redis.pcall('SET', KEYS[k], '', 'PX', 1)
  end
  return lives
end

-- mark sets or refreshes an owner's mark on one side. It uses NX there, or the owner would lose its
-- place. waiting goes first: no mark may be left that waiting does not list.
local function mark(side, owner, since, ms, life)
  if not (note(waiting, 'CH', ms + life, owner, life) and note(side, 'NX', since, owner, life)) then
    unmark(owner)
  end
end

-- oldest returns since when the first owner on that side waits, and for how many ms its mark still
-- counts. It passes over the owners that begin with process, unless that is '', and looks at the
-- first 16.
local function oldest(side, process, ms)
  local marks = redis.call('ZRANGE', KEYS[side], 0, 15, 'WITHSCORES')
  for i = 1, #marks, 2 do
    if process == '' or string.sub(marks[i], 1, #process) ~= process then
      local till = tonumber(redis.call('ZSCORE', KEYS[waiting], marks[i]) or 0)
      return tonumber(marks[i + 1]), math.max(till - ms, 1)
    end
  end
end

-- purge drops marks that nobody refreshes any more. It also drops marks that would count for longer
-- than any mark does: the clock has been set back since, and their times are those of the old
-- clock. A waiter that still waits leaves a mark again, by the new clock.
local function purge(ms)
  local dead, ahead = string.format('%.0f', ms), string.format('%.0f', ms + 10000)
  for _, range in ipairs({{'-inf', dead}, {ahead, '+inf'}}) do
    for _, owner in ipairs(redis.call('ZRANGEBYSCORE', KEYS[waiting], range[1], range[2], 'LIMIT', 0, 64)) do
      unmark(owner)
    end
  end
end

-- before reports whether a writer was let in after the time since, as far as the token tells. A
-- token that is ahead of the clock, because the clock was set back, does not tell.
local function before(since, token, now)
  return since * 1000 < token and token <= now
end

