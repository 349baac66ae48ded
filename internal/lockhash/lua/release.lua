-- Releases the lock, whatever the owner's count, or gives up its place in the
-- queue; if the lock is free then, hands it to the first who waits. An owner is
-- never used again, so this may run late and any number of times.
--
-- The waiter gets the lock for as long as its place is kept, with the count 0.
-- It must come for it: that takes the token and the whole lease.
--
-- KEYS[1] the lock
-- KEYS[2] the queue
-- KEYS[3] until when the places in it are kept
-- KEYS[4] stands while the lock is left to those outside the queue
--         In a slot on the move, where a call with several keys would be told to
--         try again, the first alone: waiters poll.
-- ARGV[1] not-after: not looked at
-- ARGV[2] the owner
-- ARGV[3] the command that tells: PUBLISH or SPUBLISH
-- ARGV[4] the channel where it is told if it is handed to nobody
-- ARGV[5] what the waiters' channels begin with, and a channel on which each of their
--         Clients listens
-- ARGV[6] one release in how many is left to those outside the queue, such as Java,
--         if there are any; 0: none
-- ARGV[7] one more that gives up its place; '': nobody
--
-- Returns {1, time}  released
--         {0, time}  the owner does not hold it
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local ms = math.floor(now / 1000)

-- A queue that is broken must not keep the lock from being released, nor need one
-- that is empty be looked at again.
local waiting = KEYS[3] and redis.pcall('ZCARD', KEYS[2])
local queue = type(waiting) == 'number' and waiting > 0
  and type(redis.pcall('ZCARD', KEYS[3])) == 'number'

-- Asked before, not after: in a slot that is on the move a key that is gone is
-- another server's to answer for.
local size = redis.call('HLEN', KEYS[1])
local released = redis.call('HDEL', KEYS[1], ARGV[2])

local function leave(owner)
  redis.call('ZREM', KEYS[3], owner)
  redis.call('ZREM', KEYS[2], owner)
end

-- Returns the first in the queue whose place is kept, and for how long, once the
-- dead before it are gone: a bounded number of them. The rest is left to those
-- who ask.
local function first()
  for _ = 1, 64 do
    local head = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
    if not head then
      return
    end
    local left = tonumber(redis.call('ZSCORE', KEYS[3], head) or 0) - ms
    if left > 0 then
      return head, left
    end
    leave(head)
  end
end

-- Returns whether anybody listens for the release but Clients of Holdfast: these
-- listen on the channel ARGV[5] too.
local function outsiders()
  local count = ARGV[3] == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
  local listen = redis.pcall('PUBSUB', count, ARGV[4], ARGV[5])
  return not listen[4] or listen[2] > listen[4]
end

-- Those outside are slower to come than those in the queue, so the lock is left to
-- them for a moment. Which releases do so is left to the clock: nothing need be
-- counted.
local function openly()
  local every = tonumber(ARGV[6])
  return released == 1 and every > 0 and math.floor(now / 8) % every == 0
    and outsiders() and redis.pcall('SET', KEYS[4], '', 'PX', 3).ok
end

if queue then
  leave(ARGV[2])
  if ARGV[7] ~= '' then
    leave(ARGV[7])
  end
end
if size > released then
  return {released, now}
end
if queue and not openly() then
  local head, left = first()
  if head then
    local handed = redis.pcall('HSET', KEYS[1], head, 0)
    local expiry = type(handed) == 'number' and redis.pcall('PEXPIRE', KEYS[1], string.format('%.0f', left))
    if type(expiry) == 'number' then
      -- Last, and never the release's failure: who may not publish still
      -- releases, and waiters poll.
      redis.pcall(ARGV[3], ARGV[5] .. ':' .. string.sub(head, 1, 36), '0')
      return {released, now}
    end
    -- A lock must never stand without an expiry.
    redis.pcall('HDEL', KEYS[1], head)
  end
end
if released == 1 then
  redis.pcall(ARGV[3], ARGV[4], '0')
end
return {released, now}
