-- The second half of release.lua: the owner has released the lock, or did not hold
-- it, and others wait, or one of its process is to. What it has found goes on: now,
-- size, released.

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
    and outsiders() and redis.pcall('SET', KEYS[5], '', 'PX', 3).ok
end

-- Hands the lock, if it is free, to the first in the queue. Returns whether it did.
local function hand_over(ms)
  if size > released then
    return false
  end
  local head, left = first(ms)
  if not head or left <= 0 then
    return false
  end
  -- As early as what a waiter may reserve that comes for more: it is to find some
  -- between this one and the clock.
  local fenced, _, token = pcall(advance, KEYS[2], now, ARGV[8], 1000)
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
  return true
end

local ms, reply = math.floor(now / 1000), {released, now}
if released == 1 and ARGV[9] ~= '' and now <= tonumber(ARGV[1]) then
  -- It may have asked for its place by itself meanwhile.
  local number = tonumber(redis.call('ZSCORE', KEYS[3], ARGV[9]) or coming(now))
  if not join(ARGV[9], number, ms, tonumber(ARGV[10])) then
    reply[3] = number
  end
end
leave(ARGV[2])
if ARGV[7] ~= '' then
  leave(ARGV[7])
end
if (openly() or not hand_over(ms)) and released == 1 then
  redis.pcall(ARGV[3], ARGV[4], '0')
end
return reply
