-- Grants the lock to a new owner whose turn it is, or keeps its place in the
-- queue, and those of others of its process. It is preceded by token.lua and queue.lua.
--
-- KEYS[1] the lock: a hash {holder: count} with an expiry. A count of 0: handed
--         to a waiter that has not asked since
-- KEYS[2] the last token given
-- KEYS[3], KEYS[4] the queue
-- KEYS[5] stands while the lock is left to those outside the queue
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the owner that asks
-- ARGV[3] the lease, in ms
-- ARGV[4] how long the token is kept, in ms; 0: for ever
-- ARGV[5] how long the places are kept, in ms; 0: take none, only try
-- ARGV[6] the owner's number, if its place was lost; 0: it has none yet
-- ARGV[7] what to do with a lock that is free. 0: take it in turn. 1: take a place
--         at the most, since others of its process wait before it. 2: take it
-- ARGV[8] how many tokens more to reserve, for those that the lock is passed on to
-- ARGV[9] the owner that takes a place, at the end, when this one gets the lock;
--         '': nobody
-- ARGV[10] the command that tells: PUBLISH or SPUBLISH
-- ARGV[11] the channel where releases are told that hand the lock to nobody
-- ARGV[12] a channel on which each Client of Holdfast listens that waits
-- ARGV[13] and on: owners whose places are kept too, if they still have one
--
-- Returns {1, time, time to live in ms, token, reserved, number, owner...}
--             granted, now or by an earlier sending; the number is that of ARGV[9],
--             0: it has no place
--         {0, time, hint in ms, number, owner...}
--             not its turn: the lock may be free after the hint; -1: nobody knows when
--         {-1, time}
--             late: nothing was done
-- The owners are those of this process who must ask by themselves, if they wait: the
-- lock was handed to them, or is free and it is their turn, or they have lost their
-- place.
-- The owner itself is among them if it had lost its place, as others of its process
-- may have.
-- As many tokens are reserved, of those that follow, as there are between the last
-- given and the clock: none is ahead of it, so that a server that has lost its data
-- gives greater ones.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if now > tonumber(ARGV[1]) then
  return {-1, now}
end
local me, keep = ARGV[2], tonumber(ARGV[5])
local ms = math.floor(now / 1000)

-- What of another type stands in the way shows before anything is written.
local ttl = redis.call('PTTL', KEYS[1])
local count = redis.call('HGET', KEYS[1], me)
local place = redis.call('ZSCORE', KEYS[3], me)
redis.call('ZCARD', KEYS[4])

-- Returns the number of the owner that takes a place with this grant. One that has
-- lost its place, or left, since the grant was made does not take another.
local function successor(fresh)
  if ARGV[9] == '' then
    return 0
  end
  local number = tonumber(redis.call('ZSCORE', KEYS[3], ARGV[9]) or 0)
  if number == 0 and fresh then
    number = coming(now)
    if join(ARGV[9], number, ms, keep) then
      -- The lock is granted all the same: that must be heard.
      number = 0
    end
  end
  return number
end

-- Adds to the reply who must ask, and keeps the other places.
local function tended(reply)
  if not place and ARGV[6] ~= '0' and not count then
    reply[#reply + 1] = me
  end
  if #ARGV >= 13 then
    redis.call('PEXPIRE', KEYS[3], life(keep))
    redis.call('PEXPIRE', KEYS[4], life(keep))
  end
  for i = 13, #ARGV do
    if redis.call('ZSCORE', KEYS[4], ARGV[i]) then
      redis.call('ZADD', KEYS[4], 'XX', string.format('%.0f', ms + keep), ARGV[i])
    else
      reply[#reply + 1] = ARGV[i]
    end
  end
  return reply
end

-- Returns how many tokens to reserve: none if others than Clients listen, such as
-- Java. They get the lock when it is released, not when it is passed on.
local function wanted()
  if ARGV[8] == '0' then
    return 0
  end
  local count = ARGV[10] == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
  local listen = redis.pcall('PUBSUB', count, ARGV[11], ARGV[12])
  return listen[4] and listen[2] <= listen[4] and tonumber(ARGV[8]) or 0
end

local function grant()
  local lease = tonumber(ARGV[3])
  if count then
    -- First, because it is allowed when memory is short, and after it the rest
    -- is too. Also where it changes nothing: a WAIT that follows on a new
    -- connection, as after an answer that was lost, counts from what that
    -- connection has written.
    ttl = math.max(ttl, lease)
    redis.call('PEXPIRE', KEYS[1], string.format('%.0f', ttl))
  end
  -- The token is written before the lock, so that nobody holds it without one.
  local fresh, reserved = not count or count == '0', 0
  local token = not fresh and tonumber(redis.call('GET', KEYS[2]) or 0) or 0
  if token == 0 then
    local new, last = advance(KEYS[2], now, ARGV[4], 0)
    token = math.max(last + 1, new - (last ~= 0 and wanted() or 0))
    reserved = new - token
  end
  if not count then
    redis.call('HSET', KEYS[1], me, 1)
    local expiry = redis.pcall('PEXPIRE', KEYS[1], ARGV[3])
    if type(expiry) == 'table' then
      -- A lock must never stand without an expiry.
      redis.call('HDEL', KEYS[1], me)
      return expiry
    end
    ttl = lease
  elseif count == '0' then
    redis.call('HSET', KEYS[1], me, 1)
  end
  if not pcall(leave, me) then
    -- The answer is an error, so nobody would give up what is granted here.
    redis.call('HDEL', KEYS[1], me)
    return redis.pcall('ZREM', KEYS[4], me)
  end
  return tended({1, now, ttl, token, reserved, successor(fresh)})
end

if count then
  return grant()
end

local head, left = first(ms, me)
local number = tonumber(place or ARGV[6])
local left_open = ttl == -2 and redis.call('PTTL', KEYS[5]) or -2
if ttl == -2 and left_open < 0 and ARGV[7] ~= '1' then
  local mine = not head or head == me or ARGV[7] == '2'
  if not mine and left > 0 and number > 0 and not place then
    mine = number < tonumber(redis.call('ZSCORE', KEYS[3], head))
  end
  if mine then
    return grant()
  end
end
if left_open >= 0 then
  ttl = math.max(left_open, 1)
elseif ttl == -2 then
  ttl = math.max(left, 1)
end
if keep == 0 then
  return {0, now, ttl, 0}
end

if place then
  -- First again for want of memory: who waits already may go on.
  redis.call('PEXPIRE', KEYS[4], life(keep))
elseif number == 0 then
  number = coming(now)
end
local failed
if place then
  failed = add(KEYS[4], ms + keep, me, keep)
  redis.call('PEXPIRE', KEYS[3], life(keep))
else
  failed = join(me, number, ms, keep)
end
if failed then
  return failed
end

local reply = {0, now, ttl, number}
-- The lock may have been handed to another of this process, or be free for it.
local turn
local holder = redis.call('HGETALL', KEYS[1])
if holder[2] == '0' then
  turn = holder[1]
elseif not holder[1] then
  turn = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
end
if turn and turn ~= me and string.sub(turn, 1, 36) == string.sub(me, 1, 36) then
  reply[5] = turn
end
return tended(reply)
