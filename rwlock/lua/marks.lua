-- The marks that waiting owners leave beside a read/write lock, so that none is
-- overtaken for ever. This stands before the scripts that use them.
--
-- at.readers, at.writers: sorted sets {owner: since when it waits}
-- at.waiting: a sorted set {owner: until when its mark counts}
-- All in ms of the server's clock. Marks are about who goes first and never about
-- who may be in, so that no failure of theirs is a lock's failure.

-- unmark takes an owner's mark away, and says whether it had one. waiting goes
-- last, and only if the rest has gone: what it does not list is never purged.
local function unmark(at, owner)
  local gone = 0
  for _, key in ipairs({at.readers, at.writers, at.waiting}) do
    local n = redis.pcall('ZREM', key, owner)
    if type(n) ~= 'number' then
      break
    end
    gone = gone + n
  end
  return gone > 0
end

-- place returns since when an owner waits that says for how long it has waited, and
-- how the owners of its process begin. A mark that stands decides: requests take
-- longer or shorter, and who saw itself elsewhere than others see it could wait
-- for them as they wait for it. One that only tries has come last, behind
-- everybody.
local function place(side, owner, waited, ms)
  if waited < 0 then
    return ms + 1, ''
  end
  return tonumber(redis.call('ZSCORE', side, owner) or ms - waited), string.sub(owner, 1, 37)
end

-- note writes one score, and says whether that has come off, expiry and all.
local function note(key, only, score, owner, life)
  local added = redis.pcall('ZADD', key, only, string.format('%.0f', score), owner)
  return type(added) == 'number' and
    type(redis.pcall('PEXPIRE', key, string.format('%.0f', life))) == 'number'
end

-- mark sets or refreshes an owner's mark on one side, NX or it would lose its
-- place. waiting goes first: nothing that it does not list may stand.
local function mark(at, side, owner, since, ms, life)
  if not (note(at.waiting, 'CH', ms + life, owner, life) and note(side, 'NX', since, owner, life)) then
    unmark(at, owner)
  end
end

-- oldest returns since when the first on that side waits who is not of the
-- process of which all owners begin so, and for how long its mark counts.
local function oldest(at, side, process, ms)
  local marks = redis.call('ZRANGE', side, 0, 15, 'WITHSCORES')
  for i = 1, #marks, 2 do
    if process == '' or string.sub(marks[i], 1, #process) ~= process then
      local till = tonumber(redis.call('ZSCORE', at.waiting, marks[i]) or 0)
      return tonumber(marks[i + 1]), math.max(till - ms, 1)
    end
  end
end

-- purge drops marks that nobody refreshes any more, and those that would count for longer
-- than any mark does: the clock has been set back since, and their times are those of the
-- old clock. A waiter that still waits leaves a mark again, by the new one.
local function purge(at, ms)
  local dead, ahead = string.format('%.0f', ms), string.format('%.0f', ms + 10000)
  for _, range in ipairs({{'-inf', dead}, {ahead, '+inf'}}) do
    for _, owner in ipairs(redis.call('ZRANGEBYSCORE', at.waiting, range[1], range[2], 'LIMIT', 0, 64)) do
      unmark(at, owner)
    end
  end
end

-- before reports whether a writer was let in after that time, as far as the token tells. One
-- that is ahead of the clock, which was set back, does not.
local function before(since, token, now)
  return since * 1000 < token and token <= now
end

