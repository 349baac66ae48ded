-- Gives a number to a new owner: the one that it prefers if that is free, else the lowest that is free.
-- On the way it takes back numbers that come back by now. It runs after failed.lua, token.lua,
-- numbers.lua and turns.lua, in one script with them.
--
-- KEYS[1] who has which number: see numbers.lua
-- KEYS[2] the last token given
-- KEYS[3], KEYS[4] those that wait: see turns.lua
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the owner that asks
-- ARGV[3] the lease, in ms
-- ARGV[4] how many numbers there are
-- ARGV[5] the number that it prefers; -1: none
-- ARGV[6] its quarantine, in ms
-- ARGV[7] how long the token is kept, in ms; 0: for ever
-- ARGV[8] how long the owner has waited, in ms; -1: it only tries
-- ARGV[9] how long its mark counts, in ms; 0: it leaves none
--
-- Returns {1, time, time to live in ms, token, number}  granted, now or by an earlier sending
--         {0, time, ms, 0}                              none is free, or others go first, for that long
--         {0, time, 0, how many}                        the holders say that there are that many numbers
--         {-1, time}                                    late: nothing was done

local ms, owner, size = math.floor(now / 1000), ARGV[2], tonumber(ARGV[4])

-- takeBack takes some of the numbers that come back by now from their owners. With the last owner goes how
-- many numbers there are.
local function takeBack()
  for _, dead in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '0', text(ms), 'LIMIT', 0, 100)) do
    drop(tonumber(dead), ownerOf(tonumber(dead)))
  end
end

-- another returns how many numbers the holders say that there are, if they say another number; else false.
local function another()
  local there = tonumber(redis.call('ZSCORE', KEYS[1], 'size') or sizes + size) - sizes
  return there ~= size and there
end
local other = another()
if other then
  takeBack() -- leases that are over say nothing any more
  other = another()
end
if other then
  return {0, now, 0, other}
end

-- numberAt returns the number of the owner at that rank.
local function numberAt(rank)
  return (parsed(redis.call('ZRANGE', KEYS[1], rank, rank, 'WITHSCORES')[2]))
end

-- lowest returns the lowest number without an owner. Up to there the number of an owner is its rank, and
-- from there on it is more.
local function lowest(owners)
  local low, high = 0, owners
  if high > 0 and numberAt(high - 1) == high - 1 then
    return high -- there is no gap
  end
  while low < high do
    local middle = math.floor((low + high) / 2)
    if numberAt(middle) > middle then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

-- comesBack takes a number from its owner if it comes back by now, and returns whether it is free.
local function comesBack(number)
  local back = redis.call('ZSCORE', KEYS[1], text(number))
  if back and tonumber(back) <= ms then
    drop(number, ownerOf(number))
  end
  return not back or tonumber(back) <= ms
end

-- refused returns the reply of a refusal, and leaves a mark. till is how many ms the first mark before which the owner
-- must not go still counts.
local function refused(since, till)
  local wait = till
  local back = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. text(ms), '(' .. text(sizes), 'WITHSCORES', 'LIMIT', 0, 1)[2]
  if back and (wait == 0 or tonumber(back) - ms < wait) then
    wait = tonumber(back) - ms
  end
  if tonumber(ARGV[9]) > 0 then
    mark(owner, since, ms, tonumber(ARGV[9]))
  end
  return {0, now, wait, 0}
end

local number, quarantine, back = nil, tonumber(ARGV[6]), ms + tonumber(ARGV[3])
local has = redis.call('ZSCORE', KEYS[1], owner)
if has then
  -- An earlier sending was granted. The lease begins anew, since the owner will count it from the
  -- sending that is answered; but it never becomes shorter, since this sending may be the earlier one.
  number, quarantine = parsed(has)
  back = math.max(back + quarantine, tonumber(redis.call('ZSCORE', KEYS[1], text(number)) or 0))
else
  back = back + quarantine
  takeBack()
  purge(ms)
  local first, till, since = ahead(owner, tonumber(ARGV[8]), ms)
  local owners = taken()
  local free = size - owners + redis.call('ZCOUNT', KEYS[1], '0', text(ms))
  if free <= first then
    return refused(since, till)
  end
  number = tonumber(ARGV[5])
  if number < 0 or not comesBack(number) then
    number = lowest(taken())
  end
end

-- The token is written before the number, so that no number is taken without one.
local token = tonumber((advance(2, clock, ARGV[7], 0)))
local life = redis.call('PTTL', KEYS[1])
local failure = failed('ZADD', redis.pcall('ZADD', KEYS[1], text(back), text(number),
  text(placed(number, quarantine)), owner, text(sizes + size), 'size'))
if failure then
  return failure
end
-- PEXPIRE runs even if it changes nothing. After a lost reply the call is sent again on a new
-- connection, and a WAIT there counts only what that connection has written.
failure = failed('PEXPIRE', redis.pcall('PEXPIRE', KEYS[1], text(math.max(life, back - ms))))
if failure then
  -- Nothing must stay without an expiry, whichever commands are refused.
  local gone = has and 0 or redis.pcall('ZREM', KEYS[1], text(number), owner, life == -2 and 'size' or '')
  if type(gone) == 'table' and life == -2 then
    redis.call('SET', KEYS[1], '', 'PX', 1)
  end
  return failure
end
unmark(owner)
return {1, now, back - quarantine - ms, token, number}
