-- Releases the lock, whatever the owner's count, or gives up its place in the
-- queue; if the lock is free then, hands it to the first who waits. An owner is
-- never used again, so this may run late and any number of times. It is preceded by
-- token.lua and queue.lua.
--
-- The waiter has the lock for as long as its place was kept, with the count 0. It is
-- told its token: if it hears that it may begin, and see to the whole lease later;
-- if not it finds out when it asks.
--
-- KEYS[1] the lock
-- KEYS[2] the last token given
-- KEYS[3], KEYS[4] the queue
-- KEYS[5] stands while the lock is left to those outside the queue
--         In a slot on the move, where a call with several keys would be told to
--         try again, the first alone: waiters poll.
-- ARGV[1] not-after, in microseconds of the server's clock, for ARGV[9] alone
-- ARGV[2] the owner
-- ARGV[3] the command that tells: PUBLISH or SPUBLISH
-- ARGV[4] the channel where it is told if it is handed to nobody
-- ARGV[5] what the waiters' channels begin with, and a channel on which each of their
--         Clients listens
-- ARGV[6] one release in how many is left to those outside the queue, such as Java,
--         if there are any; 0: none
-- ARGV[7] one more that gives up its place; '': nobody
-- ARGV[8] how long the token is kept, in ms; 0: for ever
-- ARGV[9] one that takes a place, before the lock is handed on, if this releases it;
--         '': nobody
-- ARGV[10] how long that place is kept, in ms
--
-- Returns {1, time}            released
--         {1, time, number}    released, and the place of ARGV[9] has that number
--         {1, time, number, 1} released, and left to those outside the queue; the
--                              number is 0 if nobody took a place
--         {0, time}            the owner does not hold it
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local ms = math.floor(now / 1000)

-- A queue that is broken must not keep the lock from being released, nor need one
-- that is empty be looked at again.
local queue, head, left = KEYS[3] ~= nil, nil, nil
if queue then
  queue, head, left = pcall(first, ms)
end
if queue and not head then
  queue = ARGV[9] ~= '' and type(redis.pcall('ZCARD', KEYS[4])) == 'number'
end

-- Asked before, not after: in a slot that is on the move a key that is gone is
-- another server's to answer for.
local size = queue and redis.call('HLEN', KEYS[1]) or 0
local released = redis.call('HDEL', KEYS[1], ARGV[2])
local reply = {released, now}

-- Returns whether anybody listens for the release but Clients of Holdfast: these
-- listen on the channel ARGV[5] too.
local function outsiders()
  local count = ARGV[3] == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
  local listen = redis.pcall('PUBSUB', count, ARGV[4], ARGV[5])
  return not listen[4] or listen[2] > listen[4]
end

-- Tells those outside the queue to look again. Redisson reads the number 0, as it
-- does of any release; Clients of Holdfast pass this over, so that they do not come in
-- crowds for a lock that is not theirs.
local function tell_outsiders()
  redis.pcall(ARGV[3], ARGV[4], '00')
end

-- Those outside are slower to come than those in the queue, so the lock is left to
-- them for a moment. Which releases do so is left to the clock: nothing need be
-- counted. The first in the queue is told alone: it comes when the moment is over.
local function openly()
  local every = tonumber(ARGV[6])
  if released == 0 or every == 0 or math.floor(now / 8) % every ~= 0
    or not outsiders() or not redis.pcall('SET', KEYS[5], '', 'PX', 3).ok then
    return false
  end
  reply[3], reply[4] = reply[3] or 0, 1
  tell_outsiders()
  if head then
    redis.pcall(ARGV[3], ARGV[5] .. ':' .. string.sub(head, 1, 36), '0')
  end
  return true
end

if not queue then
  if released == 1 and not (KEYS[5] and openly()) then
    redis.pcall(ARGV[3], ARGV[4], '0')
  end
  return reply
end

-- Hands the lock, if it is free, to the first in the queue. Returns whether it did.
local function hand_over()
  if size > released or not head or left <= 0 then
    return false
  end
  -- As early as what a waiter may reserve that comes for more: it is to find some
  -- between this one and the clock.
  local fenced, token = pcall(advance, KEYS[2], now, ARGV[8], 1000)
  local handed = fenced and redis.pcall('HSET', KEYS[1], head, 0)
  local expiry = type(handed) == 'number' and redis.pcall('PEXPIRE', KEYS[1], string.format('%.0f', left))
  if type(expiry) ~= 'number' then
    -- A lock must never stand without an expiry.
    redis.pcall('HDEL', KEYS[1], head)
    return false
  end
  leave(head)
  -- Last, and never the release's failure: who may not publish still releases,
  -- and waiters poll.
  redis.pcall(ARGV[3], ARGV[5] .. ':' .. string.sub(head, 1, 36),
    string.format('%s %.0f %.0f', string.sub(head, 38), token, left))
  if outsiders() then
    -- They sleep for as long as the last holder might have kept the lock, and the
    -- waiter may have died: from now on it is for what is left of its place.
    tell_outsiders()
  end
  return true
end

-- Gives up a place, if the owner has one.
local function quit(owner)
  leave(owner)
  if owner == head then
    head, left = first(ms)
  end
end

if released == 1 and ARGV[9] ~= '' and now <= tonumber(ARGV[1]) then
  -- It may have asked for its place by itself meanwhile.
  local number = tonumber(redis.call('ZSCORE', KEYS[3], ARGV[9]) or coming(now))
  if not join(ARGV[9], number, ms, tonumber(ARGV[10])) then
    reply[3] = number
  end
  if not head then
    head, left = first(ms)
  end
end
-- Who has held the lock has no place: it went with the grant.
if released == 0 then
  quit(ARGV[2])
end
if ARGV[7] ~= '' then
  quit(ARGV[7])
end
if not openly() and not hand_over() and released == 1 then
  redis.pcall(ARGV[3], ARGV[4], '0')
end
return reply
