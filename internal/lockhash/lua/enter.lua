-- Grants the lock to a new owner if it is that owner's turn. If not, it gives the owner a place in
-- the queue, or keeps the place that it has. It also keeps the places of other owners of the same
-- process. It runs after token.lua and queue.lua, in one script with them.
--
-- KEYS[1] the lock: a hash {owner: count} with an expiry. A count of 0: the lock was handed
--         to a waiter that has not asked since
-- KEYS[2] the last token given
-- KEYS[3], KEYS[4] the queue: see queue.lua
-- KEYS[5] exists while the lock is left to those outside the queue
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the owner that asks
-- ARGV[3] the lease, in ms
-- ARGV[4] how long the token is kept, in ms; 0: for ever
-- ARGV[5] how long the places are kept, in ms; 0: take no place, only try
-- ARGV[6] the number of the owner's place, to take it again if it was lost; 0: it has had none
-- ARGV[7] what to do if the lock is free. 0: take it if it is the owner's turn. 1: take a place
--         only, since others of its process wait before it. 2: take it in any case
-- ARGV[8] how many more tokens to reserve, for the holders to whom the lock is passed on
-- ARGV[9] the owner that takes a place, at the end, if this one gets the lock; '': none
-- ARGV[10] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[11] the channel of releases that hand the lock to no waiter
-- ARGV[12] a channel on which every waiting Client of Holdfast listens, and nobody else
-- ARGV[13] and on: owners whose places are kept too, if they still have one
--
-- Returns {1, time, time to live in ms, token, reserved, number, owner...}
--             granted, now or by an earlier sending. The number is that of the place of
--             ARGV[9]; 0: it has no place
--         {0, time, hint in ms, number, holder, last token, owner...}
--             not its turn. The lock may be free after the hint; -1: it has no expiry. The
--             number is that of the owner's place; 0: it has none. The holder and the token are
--             texts: '' if nobody holds the lock
--         {-1, time}
--             late: nothing was done
--
-- The owners in the reply are those of this process that must each ask, if they still
-- wait: the lock was handed to them, or is free and it is their turn, or they have lost their
-- place. The owner that asks is among them if it had lost its own place, since others of its
-- process may have lost theirs too.
--
-- The reserved tokens follow the token of the grant. There are only as many as fit between the last
-- token given and the server's clock. None is ahead of the clock, so a server that has lost its
-- data still gives greater ones.

local me, keep = ARGV[2], tonumber(ARGV[5])
local ms = math.floor(now / 1000)

-- These reads fail if a key holds a value of another type. So the script fails before it has
-- written anything.
local ttl = redis.call('PTTL', KEYS[1])
local count = redis.call('HGET', KEYS[1], me)
local place = redis.call('ZSCORE', KEYS[3], me)
redis.call('ZCARD', KEYS[4])

-- Returns the number of the place of ARGV[9], which takes one if the grant is fresh. If the grant
-- was made by an earlier sending it takes none: it may have lost its place since, or left the
-- queue.
local function successor(fresh)
  if ARGV[9] == '' then
    return 0
  end
  local number = tonumber(redis.call('ZSCORE', KEYS[3], ARGV[9]) or 0)
  if number == 0 and fresh then
    number = coming(now)
    if join(ARGV[9], number, ms, keep) then
      -- The lock is granted all the same, and the caller must hear of that.
      number = 0
    end
  end
  return number
end

-- Appends the owners that must each ask to the reply, and keeps the places of the others.
local function tended(reply)
  if not place and ARGV[6] ~= '0' and not count then
    reply[#reply + 1] = me
  end
  if #ARGV < 13 then
    return reply
  end
  redis.call('PEXPIRE', KEYS[3], life(keep))
  redis.call('PEXPIRE', KEYS[4], life(keep))
  -- One command for eight of them takes half of the time of eight. Each counts the places that it
  -- has changed. If that is not all, some are lost, or were kept in this same ms already.
  local till, kept, i = string.format('%.0f', ms + keep), 0, 13
  while i + 7 <= #ARGV do
    kept = kept + redis.call('ZADD', KEYS[4], 'XX', 'CH', till, ARGV[i], till, ARGV[i + 1],
      till, ARGV[i + 2], till, ARGV[i + 3], till, ARGV[i + 4], till, ARGV[i + 5],
      till, ARGV[i + 6], till, ARGV[i + 7])
    i = i + 8
  end
  for j = i, #ARGV do
    kept = kept + redis.call('ZADD', KEYS[4], 'XX', 'CH', till, ARGV[j])
  end
  if kept < #ARGV - 12 then
    for i = 13, #ARGV do
      if not redis.call('ZSCORE', KEYS[4], ARGV[i]) then
        reply[#reply + 1] = ARGV[i]
      end
    end
  end
  return reply
end

-- Returns how many tokens to reserve: none while anyone but Clients listens, such as Java. Those
-- outside the queue get the lock when it is released, not while it is passed on.
local function wanted()
  if ARGV[8] == '0' or outsiders(ARGV[10], ARGV[11], ARGV[12]) then
    return 0
  end
  return tonumber(ARGV[8])
end

local function grant()
  local lease = tonumber(ARGV[3])
  if count then
    -- PEXPIRE comes first: Redis allows it when memory is short, and after it the other writes too.
    -- It runs even if it changes nothing. After a lost reply the call is sent again on a new
    -- connection, and a WAIT there counts only what that connection has written.
    ttl = math.max(ttl, lease)
    redis.call('PEXPIRE', KEYS[1], string.format('%.0f', ttl))
  end
  -- The token is written before the lock, so that nobody holds the lock without a token.
  local fresh, reserved = not count or count == '0', 0
  local token = not fresh and tonumber(redis.call('GET', KEYS[2]) or 0) or 0
  if token == 0 then
    local text, last = advance(2, clock, ARGV[4], 0)
    local new = tonumber(text)
    token = math.max(last + 1, new - (last ~= 0 and wanted() or 0))
    reserved = new - token
  end
  if not count then
    redis.call('HSET', KEYS[1], me, '1')
    local expiry = redis.pcall('PEXPIRE', KEYS[1], ARGV[3])
    if type(expiry) == 'table' then
      -- A lock must never be left without an expiry, whichever commands are refused.
      if type(redis.pcall('HDEL', KEYS[1], me)) == 'table' then
        redis.call('SET', KEYS[1], '', 'PX', 1)
      end
      expiry.err = expiry.err .. " ('PEXPIRE')"
      return expiry
    end
    ttl = lease
  elseif count == '0' then
    redis.call('HSET', KEYS[1], me, '1')
  end
  if place and not pcall(leave, me) then
    -- The caller gets an error, so it would never release what is granted here. Take it back.
    redis.call('HDEL', KEYS[1], me)
    return redis.call('ZREM', KEYS[4], me)
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
local holder = redis.call('HGETALL', KEYS[1])
local token = holder[1] and redis.pcall('GET', KEYS[2])
if type(token) ~= 'string' then
  token = ''
end
if keep == 0 then
  return {0, now, ttl, 0, holder[1] or '', token}
end

if place then
  -- PEXPIRE comes first here too: when memory is short, an owner that already waits can then keep
  -- its place.
  redis.call('PEXPIRE', KEYS[4], life(keep))
elseif number == 0 then
  number = coming(now)
end
local failed
if place then
  failed = add(4, 'CH', ms + keep, me, keep)
  redis.call('PEXPIRE', KEYS[3], life(keep))
else
  failed = join(me, number, ms, keep)
end
if failed then
  return failed
end

local reply = {0, now, ttl, number, holder[1] or '', token}
-- The lock may have been handed to another owner of this process, or be free with that owner first
-- in the queue.
local turn
if holder[2] == '0' then
  turn = holder[1]
elseif not holder[1] then
  turn = redis.call('ZRANGE', KEYS[3], '0', '0')[1]
end
if turn and turn ~= me and string.sub(turn, 1, 36) == string.sub(me, 1, 36) then
  reply[7] = turn
end
return tended(reply)
