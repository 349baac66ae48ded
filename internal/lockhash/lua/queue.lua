-- Begins the scripts on the queue of a lock: who is in it.
--
-- KEYS[3] the queue: a sorted set {owner: number}
-- KEYS[4] a sorted set {owner: until when its place is kept, in ms}

-- In this order: who is in the queue without being kept is passed over.
local function leave(owner)
  redis.call('ZREM', KEYS[4], owner)
  redis.call('ZREM', KEYS[3], owner)
end

-- Returns the first in the queue whose place is kept at the time ms, and for how
-- long, or me; nil if there is nobody. The dead before it go: a bounded number of
-- them, then the last is returned, with 0 or less.
local function first(ms, me)
  local head, left
  for _ = 1, 64 do
    head, left = redis.call('ZRANGE', KEYS[3], 0, 0)[1], 0
    if not head or head == me then
      break
    end
    left = tonumber(redis.call('ZSCORE', KEYS[4], head) or 0) - ms
    if left > 0 then
      break
    end
    leave(head)
  end
  return head, left
end

-- Returns the number of one who comes at the time now, in microseconds.
local function coming(now)
  local last = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2]
  local number = math.max(tonumber(last or 0) + 1, now)
  if number % 10 == 0 then
    -- Some servers write 1700000000000000 as 1.7e+15, and not every Lua reads
    -- that.
    number = number + 1
  end
  return number
end

-- Returns how long the queue's keys stay, in ms, where places are kept for keep:
-- nothing is left behind by processes that are gone.
local function life(keep)
  return string.format('%.0f', 6 * keep)
end

-- Adds the owner to one of the queue's two keys. It returns the error, if there is
-- one.
local function add(key, score, owner, keep)
  local done = redis.pcall('ZADD', key, string.format('%.0f', score), owner)
  if type(done) ~= 'table' then
    done = redis.pcall('PEXPIRE', key, life(keep))
    if type(done) == 'table' then
      redis.call('ZREM', key, owner)
    end
  end
  return type(done) == 'table' and done or nil
end

-- Gives the owner the place of that number, kept for keep from the time ms. It
-- returns the error, if there is one.
local function join(owner, number, ms, keep)
  return add(KEYS[3], number, owner, keep) or add(KEYS[4], ms + keep, owner, keep)
end

