-- What the scripts on a lock's queue share: who is in the queue, and how an owner joins and leaves
-- it. Those scripts begin with life.lua and this file.
--
-- KEYS[3] the queue: a sorted set {owner: number}
-- KEYS[4] a sorted set {owner: until when its place is kept, in ms of the server's clock}
--
-- A number that is always the same is a text here: to make that of a number costs a server half a
-- command.

-- Takes the owner out of the queue. The order matters: an owner that is in the queue, but whose
-- place is not kept, is passed over.
local function leave(owner)
  redis.call('ZREM', KEYS[4], owner)
  redis.call('ZREM', KEYS[3], owner)
end

-- No place is kept for longer than 5 s, in ms. See first.
local longest = 5000

-- Returns the first owner in the queue whose place is kept at the time ms, and for how many ms
-- more. If me comes first it returns me, with 0; if the queue is empty, nil. It removes the places
-- before that owner, which have lapsed. After 64 of them it stops, and returns the last one, with 0
-- or less.
--
-- A place that seems to be kept for longer than 5 s is from before the server's clock was set
-- back. Its owner may have died since, so it is kept for 5 s from now.
local function first(ms, me)
  local head, left
  for _ = 1, 64 do
    head, left = redis.call('ZRANGE', KEYS[3], '0', '0')[1], 0
    if not head or head == me then
      break
    end
    left = tonumber(redis.call('ZSCORE', KEYS[4], head) or 0) - ms
    if left > longest then
      left = longest
      redis.pcall('ZADD', KEYS[4], 'XX', string.format('%.0f', ms + left), head)
    end
    if left > 0 then
      break
    end
    leave(head)
  end
  return head, left
end

-- Returns the number for an owner that joins at the time now, in microseconds, and whether the last
-- owner in the queue has joined in the same second.
local function coming(now)
  local last = tonumber(redis.call('ZRANGE', KEYS[3], '-1', '-1', 'WITHSCORES')[2] or 0)
  local number = math.max(last + 1, now)
  if number % 10 == 0 then
    -- Some servers write 1700000000000000 as 1.7e+15, and not every Lua can read that.
    number = number + 1
  end
  return number, math.floor(last / 1000000) == math.floor(now / 1000000)
end

-- Adds the owner to one of the queue's two keys, which is KEYS[k]. If only is NX, an owner that is
-- there stays as it is; otherwise it is CH. Returns the error if that fails, and otherwise how many
-- were changed. If stays is true, the key's end is not put off.
local function add(k, only, score, owner, keep, stays)
  local command, done = 'ZADD', redis.pcall('ZADD', KEYS[k], only, string.format('%.0f', score), owner)
  local changed = done
  if type(done) ~= 'table' and not stays then
    command, done = 'PEXPIRE', redis.pcall('PEXPIRE', KEYS[k], life(keep))
    -- Nothing must stay without an expiry, whichever commands are refused.
    if type(done) == 'table' and type(redis.pcall('ZREM', KEYS[k], owner)) == 'table'
      and redis.pcall('PTTL', KEYS[k]) == -1 then
      redis.pcall('SET', KEYS[k], '', 'PX', 1)
    end
  end
  if type(done) == 'table' then
    done.err = done.err .. " ('" .. command .. "')"
    return done
  end
  return nil, changed
end

-- Gives the owner the place with that number, kept for keep ms from the time ms. If it has a place, it
-- keeps that. Returns the error if that fails, and otherwise whether the place is new: 1, or 0.
--
-- stays says that the end of the queue's keys need not be put off: a place in the queue is kept,
-- and the last owner has joined in the same second (see coming). The first owner to join in a
-- second puts the end off, and so does each request in a place. So the keys outlast every place by
-- far.
local function join(owner, number, ms, keep, stays)
  local failed, new = add(3, 'NX', number, owner, keep, stays)
  return failed or add(4, 'CH', ms + keep, owner, keep, stays), new
end

